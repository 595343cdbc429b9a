// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <string>

#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/json/model.hpp>

/// What the tests of actions and plans share: shipped models and devices.
namespace vlmest::test {

inline Vlm shipped(const std::string& name) {
  std::ifstream in(std::string(VLMEST_SOURCE_DIR) + "/models/vlm/" + name + ".json");
  return json::read_model(nlohmann::json::parse(in), name);
}
inline Device device(const std::string& name = "h100-sxm") {
  return load_device(std::string(VLMEST_SOURCE_DIR) + "/models/device/" + name + ".json");
}
/// A device with that much memory for the allocator.
inline Device device_of(double gib) {
  Device d = device();
  d.usable_bytes = Bytes(static_cast<std::int64_t>(gib * 1024 * 1024 * 1024));
  return d;
}
inline diagnose::Settings settings(const std::string& model, const Plan& plan = {}) {
  return {shipped(model), plan, {}, {}};
}

}  // namespace vlmest::test
