// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/parallel/network.hpp>

namespace vlmest::json {

/// A network from its JSON (docs/reference/network.schema.json). `file` names it in messages. Throws Error, naming file
/// and key, for a missing or unknown key, a wrong type, and a value that no network can have.
parallel::Network read_network(const nlohmann::json& j, const std::string& file);

/// The same from JSON text.
parallel::Network parse_network(std::string_view text, const std::string& file);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/network.hpp>
#endif
