// SPDX-License-Identifier: Apache-2.0
#include "catalogue.hpp"

#include <algorithm>
#include <cctype>

#include <vlmest/json/parse.hpp>
#include <vlmest/unit/nearest.hpp>

#include "files.hpp"
#include "shipped.hpp"

namespace vlmest::tool {
namespace fs = std::filesystem;

namespace {

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

std::string without_json(const std::string& name) {
  return lower(name).ends_with(".json") ? name.substr(0, name.size() - 5) : name;
}

std::string device_word(const std::string& name) {
  std::string s = lower(without_json(name));
  std::replace_if(
      s.begin(), s.end(), [](char c) { return c == ' ' || c == '_'; }, '-');
  return s;
}

/// "ORGANISATION/NAME", and no path.
bool is_hub_id(const std::string& s) {
  const auto slash = s.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < s.size() && slash == s.rfind('/') && s.front() != '.' &&
         s.front() != '~' && !lower(s).ends_with(".json") && std::all_of(s.begin(), s.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
         });
}

std::string see_all(const std::string& near, const std::string& list) {
  return near.empty() ? "see '" + list + "' for the shipped ones"
                      : "did you mean " + near + "? '" + list + "' shows all";
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  const std::vector<std::string_view> views(known.begin(), known.end());
  return std::string(vlmest::nearest(word, views));
}

std::vector<std::string> shipped(const std::string& kind) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& e : fs::directory_iterator(shipped_models() / kind, ignored))
    if (e.path().extension() == ".json") names.push_back(e.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<ShippedFile> catalogue(const std::string& kind) {
  std::vector<ShippedFile> r;
  for (const auto& name : shipped(kind)) {
    ShippedFile f{.file = shipped_models() / kind / (name + ".json"), .name = name, .aliases = {}};
    const nlohmann::json j = json::parse(read_file(f.file.string()), f.file.string());
    if (j.contains("id") && j["id"].is_string()) f.aliases.push_back(j["id"]);
    if (j.contains("aliases") && j["aliases"].is_array())
      for (const auto& alias : j["aliases"])
        if (alias.is_string()) f.aliases.push_back(alias);
    r.push_back(std::move(f));
  }
  return r;
}

std::optional<fs::path> shipped_model(const std::string& name) {
  const std::string asked = lower(without_json(name));
  for (const auto& known : shipped("vlm"))
    if (lower(known) == asked) return shipped_models() / "vlm" / (known + ".json");
  for (const ShippedFile& f : catalogue("vlm"))
    for (const auto& id : f.aliases)
      if (lower(id) == asked || lower(id).ends_with("/" + asked)) return f.file;
  return std::nullopt;
}

std::optional<fs::path> shipped_device(const std::string& name) {
  const std::string asked = device_word(name);
  for (const auto& known : shipped("device"))
    if (device_word(known) == asked) return shipped_models() / "device" / (known + ".json");
  for (const ShippedFile& f : catalogue("device"))
    for (const auto& alias : f.aliases)
      if (device_word(alias) == asked) return f.file;
  return std::nullopt;
}

std::string did_you_mean_model(const std::string& name) {
  if (!is_hub_id(name)) return see_all(nearest(lower(without_json(name)), shipped("vlm")), "vlmest models");
  std::vector<std::string> ids, words;
  for (const ShippedFile& f : catalogue("vlm"))
    for (const auto& id : f.aliases) {
      ids.push_back(id);
      words.push_back(lower(id));
    }
  const std::string near = nearest(lower(name), words);
  std::string hint;
  if (!near.empty()) {
    const auto at = std::find(words.begin(), words.end(), near) - words.begin();
    hint = "did you mean " + ids[static_cast<std::size_t>(at)] + "? else ";
  }
  return hint + "get its config: hf download " + name + " --include '*config.json' --local-dir DIR, then --config DIR";
}

std::string did_you_mean_device(const std::string& name) {
  std::vector<std::string> known = shipped("device");
  for (const ShippedFile& f : catalogue("device"))
    for (const auto& alias : f.aliases) known.push_back(device_word(alias));
  return see_all(nearest(device_word(name), known), "vlmest devices");
}

}  // namespace vlmest::tool
