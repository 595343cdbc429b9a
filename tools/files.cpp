// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>

#include "shipped.hpp"

namespace vlmest::tool {
namespace fs = std::filesystem;

namespace {

/// No model description is larger; a larger file is something else.
constexpr std::uintmax_t largest_file = 64u << 20;

std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string did_you_mean(const std::string& word, const std::string& kind, const std::string& list) {
  const std::string near = nearest(word, shipped(kind));
  return near.empty() ? "see '" + list + "' for the shipped ones" : "did you mean " + near + "? '" + list + "' shows all";
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(3, word.size() / 3 + 1);
  for (const auto& k : known)
    if (const std::size_t d = distance(word, k); d < least) {
      least = d;
      best = k;
    }
  return best;
}

std::vector<std::string> shipped(const std::string& kind) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& e : fs::directory_iterator(shipped_models() / kind, ignored))
    if (e.path().extension() == ".json") names.push_back(e.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::error_code failed;
  if (fs::is_directory(path, failed)) throw Error(path, "is a folder, not a file", "name the file inside it");
  const auto size = fs::file_size(path, failed);
  if (!failed && size > largest_file) throw Error(path, "larger than 64 MiB", "a model description is a small JSON file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Error(path, "cannot be read", "check the path and its permissions");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Vlm find_model(const std::string& config) {
  std::error_code ignored;
  fs::path path = config;
  if (config != "-") {
    if (fs::is_directory(path, ignored)) {
      path /= "config.json";
      if (!fs::exists(path, ignored)) throw Error(config, "the folder holds no config.json", "name a file, or the folder of a checkpoint");
    }
    if (!fs::exists(path, ignored)) {
      const bool bare = path.parent_path().empty();
      const std::string stem = path.extension() == ".json" ? path.stem().string() : path.string();
      const fs::path known = shipped_models() / "vlm" / (stem + ".json");
      if (!bare || !fs::exists(known, ignored))
        throw Error(config, "no such model or file", did_you_mean(stem, "vlm", "vlmest models"));
      path = known;
    }
  }
  const std::string where = config == "-"                          ? "standard input"
                            : path.filename() == "config.json" ? path.string()
                                                               : path.filename().string();
  Vlm vlm = json::parse_model(read_file(path.string()), where);
  if (vlm.name.empty()) {
    const bool anonymous = path.filename() == "config.json" && path.has_parent_path();
    vlm.name = config == "-" ? "model" : anonymous ? fs::absolute(path).parent_path().filename().string() : path.stem().string();
  }
  return vlm;
}

Device find_device(const std::string& device) {
  std::error_code ignored;
  if (const fs::path known = shipped_models() / "device" / (device + ".json"); fs::exists(known, ignored))
    return load_device(known.string());
  if (device != "-" && !fs::exists(device, ignored)) throw Error("--device", "unknown device '" + device + "'", did_you_mean(device, "device", "vlmest devices"));
  return parse_device(read_file(device), device == "-" ? "standard input" : device);
}

}  // namespace vlmest::tool
