// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/report/roofline_ceilings.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest {

VLMEST_INLINE RooflineCeilings ceilings(const Device& device, std::span<const RooflinePoint> points) {
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
  sort_stably(r.compute, [](const auto& a, const auto& b) { return a.rate > b.rate; });
  return r;
}

}  // namespace vlmest
