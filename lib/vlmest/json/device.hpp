// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include <vlmest/device/device.hpp>
#include <vlmest/json/efficiency.hpp>

namespace vlmest {

namespace device_json {

/// {"launch": [0.97, 1.56], …}: the lowest and the highest part of each value that was found.
TimeSpread read_spread(const nlohmann::json& o, const Place& at);

}  // namespace device_json

/// A device from its JSON (docs/reference/device.schema.json). `file` names it in messages. Every value comes with its
/// source. Throws Error, naming file and key, for a missing or unknown key, a wrong type, and a value that no device
/// can have.
Device read_device(const nlohmann::json& j, const std::string& file);

/// The same from JSON text.
Device parse_device(std::string_view text, const std::string& file);

/// The same from a file.
inline Device load_device(const std::filesystem::path& file) {
  std::error_code ignored;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, ignored))
    throw Error(file.string(), "cannot be read", "give the path of a device description");
  return parse_device(std::string(std::istreambuf_iterator<char>(in), {}), file.string());
}

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/json/impl/device.hpp>
#endif
