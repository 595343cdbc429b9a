// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

/// JSON Schemas as the pages below docs/reference are printed out of them.
namespace generate {

using Json = nlohmann::ordered_json;

inline Json load(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string() + "; run this in the root of the sources");
  return Json::parse(in);
}

/// What "$ref" leads to, or the value itself.
inline const Json& resolved(const Json& root, const Json& s) {
  return s.contains("$ref") ? root.at(Json::json_pointer(s["$ref"].get<std::string>().substr(1))) : s;
}

}  // namespace generate
