// SPDX-License-Identifier: Apache-2.0
// Prints docs/reference/devices.md: every shipped device description with the sources of its values.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <vlmest/json/device.hpp>

#include "source.hpp"

namespace {

std::string text(const nlohmann::ordered_json& v) {
  if (v.is_object()) return "as in the file";
  if (v.is_number_integer()) return reference::grouped(v.get<std::int64_t>());
  char number[32];
  std::snprintf(number, sizeof number, "%.6g", v.get<double>());
  return number;
}

}  // namespace

int main() {
  try {
    std::vector<std::filesystem::path> files;
    for (const auto& e : std::filesystem::directory_iterator("models/device"))
      if (e.path().extension() == ".json") files.push_back(e.path());
    std::sort(files.begin(), files.end());
    std::printf(
        "# Devices\n\nThe shipped descriptions, with the source of each value. This page is printed by "
        "`docs/generate/devices.cpp` out of\n"
        "[models/device](../../models/device); the format is [device.schema.json](device.schema.json). `vlmest "
        "devices` lists them\n"
        "shortly. Rates are dense ones of the datasheets; 0 means that the device has no such unit. A file of your own "
        "works as\n"
        "well: `--device my-gpu.json`.\n");
    for (const auto& file : files) {
      const auto device = vlmest::load_device(file.string());
      std::ifstream in(file);
      const auto j = nlohmann::ordered_json::parse(in);
      std::printf("\n## %s\n\n%s (%s), compute capability %d.%d\n\n| key | value | source |\n|---|---|---|\n",
                  device.name.c_str(), device.product.c_str(), device.architecture.c_str(), device.sm / 10,
                  device.sm % 10);
      for (const auto& [key, source] : j["sources"].items()) {
        const auto& v = j[key];
        std::string value;
        if (key == "efficiency")  // too much for a table
          value = "parameters of the [time model](../explanation/time.md)";
        else if (v.is_object())
          for (const auto& [k, x] : v.items()) value += (value.empty() ? "" : ", ") + k + " " + text(x);
        else
          value = text(v);
        std::printf("| `%s` | %s | %s |\n", key.c_str(), value.c_str(), source.get<std::string>().c_str());
      }
    }
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
