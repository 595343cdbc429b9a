// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vlmest/json/families.hpp>

#include "schema.hpp"

/// The JSON Schema of descriptions, put together from what families share and what the folder of each says.
namespace generate {

/// A value with as much on a line as fits in 120 columns; what does not fit has a line for each of its parts, lists of
/// words as few lines as they need. `key` stands in front of it.
inline std::string text(const Json& v, std::size_t indent = 0, const std::string& key = {}) {
  constexpr std::size_t columns = 119;  // and a comma
  std::string flat = key;
  bool quoted = false, escaped = false;
  for (const char c : v.dump()) {
    flat += c;
    if (!quoted && (c == ',' || c == ':')) flat += ' ';
    if (c == '"' && !escaped) quoted = !quoted;
    escaped = quoted && c == '\\' && !escaped;
  }
  if (!v.is_structured() || indent + flat.size() <= columns) return flat;
  const std::string pad(indent + 2, ' ');
  std::string s = key + (v.is_object() ? "{" : "[");
  bool words = v.is_array();
  if (words)
    for (const Json& e : v) words = words && !e.is_structured();
  std::size_t i = 0, column = 0;
  for (const auto& [name, e] : v.items()) {
    std::string part = text(e, indent + 2, v.is_object() ? Json(name).dump() + ": " : "");
    if (++i < v.size()) part += ',';
    if (words && column > 0 && column + 1 + part.size() <= columns + 1) {
      s += ' ' + part;
      column += 1 + part.size();
    } else {
      s += '\n' + pad + part;
      column = pad.size() + part.size();
    }
  }
  return s + '\n' + std::string(indent, ' ') + (v.is_object() ? '}' : ']');
}

/// `shared` with the rows' model types, their parts out of schema.json of each row's folder below `folders`, and the
/// keys of "image" with the model types whose rules know them. Throws where a model_type or a key is not described.
inline Json description_schema(Json shared, vlmest::json::FamilyRows rows, const std::filesystem::path& folders) {
  using namespace vlmest::json;
  Json& parts = shared["$defs"];
  for (const FamilyRow& row : rows) {
    const std::filesystem::path file = folders / row.folder / "schema.json";
    if (!std::filesystem::exists(file)) continue;
    const Json own = load(file);
    for (const auto& [name, part] : own.items()) {
      if (parts.contains(name)) throw std::runtime_error(file.string() + ": " + name + " is described already");
      parts[name] = part;
    }
  }
  Json &model = shared["properties"]["model"], &image = shared["properties"]["image"]["properties"];
  Json types = Json::array(), choices = Json::array();
  std::map<std::string, std::string> readers;
  const nlohmann::json nothing = nlohmann::json::object();
  for (const FamilyRow& row : rows)
    for (const ModelType& t : row.types) {
      const std::string type(t.type);
      if (!parts.contains(type))
        throw std::runtime_error(std::string(row.folder) + "/schema.json does not describe " + type);
      types.push_back(type);
      choices.push_back(
          {{"if", {{"properties", {{"model_type", {{"const", type}}}}}}}, {"then", {{"$ref", "#/$defs/" + type}}}});
      if (!parts[type]["properties"].contains("vision_config")) continue;
      std::set<std::string> keys;
      for (const RuleReader& r : row.rules) {
        DescriptionImage read{Reader(nothing, "image")};
        vlmest::ImageProcessor rule = r.defaults();
        r.image(read, rule);
        for (const std::string_view k : read.keys()) keys.emplace(k);
      }
      for (const std::string& k : keys) readers[k] += (readers[k].empty() ? "" : ", ") + type;
    }
  model["properties"]["model_type"] = {{"enum", std::move(types)}};
  model["allOf"] = std::move(choices);
  for (const auto& [key, list] : readers) {
    if (!image.contains(key)) throw std::runtime_error("\"image\" has no " + key + ", which " + list + " reads");
    const std::string meaning = image[key].value("description", "");
    image[key]["description"] = list + (meaning.empty() ? "" : ": " + meaning);
  }
  return shared;
}

}  // namespace generate
