// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/report/roofline_points.hpp>

namespace vlmest {

/// A rate that the device cannot exceed, by its datasheet or as it was measured on one.
template <class Rate>
struct Ceiling {
  std::string name;  ///< "DRAM", "bf16 tensor cores"
  Rate rate{};
  bool measured = false;
};

struct RooflineCeilings {
  std::vector<Ceiling<Bandwidth>> bandwidth;
  std::vector<Ceiling<FlopRate>> compute;  ///< the fastest first
  Seconds kernel_floor{};                  ///< no kernel takes less

  /// The datasheet's DRAM.
  Bandwidth dram() const { return bandwidth.front().rate; }
};

/// FLOPs per byte where a bandwidth and a peak meet.
constexpr double ridge(Bandwidth bandwidth, FlopRate peak) { return peak.value / bandwidth.value; }

/// The ceilings of a device over these points: every bandwidth, and the peaks of the units that their arithmetic runs
/// on.
inline RooflineCeilings ceilings(const Device& device, std::span<const RooflinePoint> points) {
  RooflineCeilings r{.bandwidth = {{"DRAM", device.dram}}, .compute = {}, .kernel_floor = device.kernel_floor};
  if (device.measured.dram_copy) r.bandwidth.push_back({"DRAM", *device.measured.dram_copy, true});
  if (device.measured.l2) r.bandwidth.push_back({"L2", *device.measured.l2, true});
  const auto add = [&](const Ceiling<FlopRate>& c) {
    for (const auto& known : r.compute)
      if (known.name == c.name && known.measured == c.measured) return;
    r.compute.push_back(c);
  };
  for (const RooflinePoint& p : points) {
    if (p.performed == Flops{}) continue;
    const bool tensor_cores = p.engine == Engine::tensor_core && has_tensor_cores(device.peaks, p.engine_dtype);
    const std::string unit = tensor_cores ? std::string(name(p.engine_dtype)) + " tensor cores" : "fp32 units";
    add({unit, peak(device, p.engine_dtype, p.engine == Engine::tensor_core)});
    if (tensor_cores && p.engine_dtype == DType::bf16 && device.measured.bf16) add({unit, *device.measured.bf16, true});
  }
  std::stable_sort(r.compute.begin(), r.compute.end(), [](const auto& a, const auto& b) { return a.rate > b.rate; });
  return r;
}

}  // namespace vlmest
