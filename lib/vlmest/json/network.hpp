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

/// Whether an entry of `vlmest bench` results is a collective (--suite nccl).
bool is_collective(const nlohmann::json& entry);

/// Such an entry: {"op": "all_reduce", "ranks": 2, "bytes": 1048576} as its label, and `real_time` in `time_unit`.
/// Throws Error naming `where` and the key.
parallel::MeasuredCollective read_collective(const nlohmann::json& entry, const std::string& where);

/// A network from JSON text.
parallel::Network parse_network(std::string_view text, const std::string& file);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/network.hpp>
#endif
