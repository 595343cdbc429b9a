// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

/// The part of JSON Schema (draft 2020-12) that the project's schemas use. A keyword outside of it is a fault of the
/// schema, so that none is passed over.
namespace schema {

using Json = nlohmann::json;

inline bool is(const Json& v, const std::string& type) {
  if (type == "object") return v.is_object();
  if (type == "array") return v.is_array();
  if (type == "string") return v.is_string();
  if (type == "boolean") return v.is_boolean();
  if (type == "integer") return v.is_number_integer();
  if (type == "number") return v.is_number();
  return false;
}

/// Adds to `faults` a line for each place where `v` breaks `rule`, a part of the schema `root`.
inline void check(const Json& root, const Json& rule, const Json& v, const std::string& at,
                  std::vector<std::string>& faults) {
  static const std::set<std::string> notes{"$schema", "$id", "$defs", "title", "description"};
  const auto fault = [&](const std::string& what) { faults.push_back(at + ": " + what); };
  for (const auto& [key, wanted] : rule.items()) {
    if (notes.contains(key)) continue;
    if (key == "$ref") {
      check(root, root.at(Json::json_pointer(wanted.get<std::string>().substr(1))), v, at, faults);
    } else if (key == "type") {
      if (!is(v, wanted.get<std::string>()))
        fault("is " + std::string(v.type_name()) + ", not " + wanted.get<std::string>());
    } else if (key == "const") {
      if (v != wanted) fault("is not " + wanted.dump());
    } else if (key == "enum") {
      if (std::find(wanted.begin(), wanted.end(), v) == wanted.end()) fault("is none of " + wanted.dump());
    } else if (key == "minimum") {
      if (v.is_number() && v.get<double>() < wanted.get<double>()) fault("is below " + wanted.dump());
    } else if (key == "minItems") {
      if (v.is_array() && v.size() < wanted.get<std::size_t>()) fault("has too few items");
    } else if (key == "maxItems") {
      if (v.is_array() && v.size() > wanted.get<std::size_t>()) fault("has too many items");
    } else if (key == "items") {
      if (v.is_array())
        for (std::size_t i = 0; i < v.size(); ++i)
          check(root, wanted, v[i], at + "[" + std::to_string(i) + "]", faults);
    } else if (key == "required") {
      for (const auto& k : wanted)
        if (v.is_object() && !v.contains(k.get<std::string>())) fault("has no " + k.get<std::string>());
    } else if (key == "properties") {
      if (v.is_object())
        for (const auto& [k, inner] : wanted.items())
          if (v.contains(k)) check(root, inner, v[k], at + "." + k, faults);
    } else if (key == "additionalProperties") {
      if (v.is_object() && wanted == false)
        for (const auto& [k, inner] : v.items())
          if (!rule.contains("properties") || !rule["properties"].contains(k))
            fault("has " + k + ", which the schema does not know");
    } else {
      fault("the schema uses '" + key + "', which this checker does not know");
    }
  }
}

inline std::vector<std::string> faults(const Json& root, const Json& v) {
  std::vector<std::string> r;
  check(root, root, v, "$", r);
  return r;
}

}  // namespace schema
