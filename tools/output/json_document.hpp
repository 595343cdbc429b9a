// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace vlmest::tool {

/// A document as the commands print it. Bytes that are no UTF-8, of file names and of what files hold, become U+FFFD.
inline std::string json_document(const nlohmann::ordered_json& j) {
  return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace vlmest::tool
