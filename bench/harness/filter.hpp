// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <regex>
#include <string>

#include <vlmest/unit/error.hpp>

namespace vlmest::bench {

/// --filter: what a point's name must contain. Throws Error where it is no regular expression.
inline std::regex read_filter(const std::string& text) {
  try {
    return std::regex(text, std::regex::extended);
  } catch (const std::regex_error&) {
    throw Error("--filter", "'" + text + "' is no regular expression", "as for grep -E");
  }
}

}  // namespace vlmest::bench
