// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>

namespace vlmest::bench {

inline std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(file, "cannot be read");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A shipped model and a shipped device.
inline Vlm model(const std::string& name) {
  return json::parse_model(read(VLMEST_MODELS "/vlm/" + name + ".json"), name);
}
inline Device device(const std::string& name) { return load_device(VLMEST_MODELS "/device/" + name + ".json"); }

}  // namespace vlmest::bench
