// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
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
RooflineCeilings ceilings(const Device& device, std::span<const RooflinePoint> points);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/roofline_ceilings.hpp>
#endif
