// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/unit/error.hpp>

namespace vlmest::json {

/// Deepest nesting that is read; walking and freeing a document recurses.
inline constexpr int deepest = 64;

/// A document out of its text. Throws Error naming line and column where it is not JSON, and where it nests too deeply.
nlohmann::json parse(std::string_view text, const std::string& where);

}  // namespace vlmest::json

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/parse.hpp>
#endif
