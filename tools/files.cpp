// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>
#include <vlmest/unit/nearest.hpp>

#include "shipped.hpp"

namespace vlmest::tool {
namespace fs = std::filesystem;

namespace {

/// No model description is larger; a larger file is something else.
constexpr std::uintmax_t largest_file = 64u << 20;

std::string did_you_mean(const std::string& word, const std::string& kind, const std::string& list) {
  const std::string near = nearest(word, shipped(kind));
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

std::string read_file(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::error_code failed;
  if (fs::is_directory(path, failed)) throw Error(path, "is a folder, not a file", "name the file inside it");
  const auto size = fs::file_size(path, failed);
  if (!failed && size > largest_file)
    throw Error(path, "larger than 64 MiB", "a model description is a small JSON file");
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
      if (!fs::exists(path, ignored))
        throw Error(config, "the folder holds no config.json", "name a file, or the folder of a checkpoint");
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
  const std::string where = config == "-"                      ? "standard input"
                            : path.filename() == "config.json" ? path.string()
                                                               : path.filename().string();
  Vlm vlm = json::parse_model(read_file(path.string()), where);
  if (vlm.name.empty()) {
    const bool anonymous = path.filename() == "config.json" && path.has_parent_path();
    vlm.name = config == "-" ? "model"
               : anonymous   ? fs::absolute(path).parent_path().filename().string()
                             : path.stem().string();
  }
  return vlm;
}

fs::path device_file(const std::string& device) {
  std::error_code ignored;
  if (const fs::path known = shipped_models() / "device" / (device + ".json"); fs::exists(known, ignored)) return known;
  if (device != "-" && !fs::exists(device, ignored))
    throw Error("--device", "unknown device '" + device + "'", did_you_mean(device, "device", "vlmest devices"));
  return device;
}

Device find_device(const std::string& device) {
  const std::string file = device_file(device).string();
  return parse_device(read_file(file), file == "-" ? "standard input" : file);
}

}  // namespace vlmest::tool
