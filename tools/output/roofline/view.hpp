// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/report/measured_op.hpp>
#include <vlmest/report/roofline_ceilings.hpp>

namespace vlmest::tool {

/// A measurement of an op that the phase runs.
struct MeasuredPoint {
  std::string name;  ///< of the benchmark
  Seconds time{};
  Bytes moved{};          ///< DRAM traffic as it was counted, else as it is predicted
  bool counted = false;   ///< which of the two
  std::size_t point = 0;  ///< of RooflineView::points
};

/// What all forms of the roofline show.
struct RooflineView {
  std::string model, phase, device, product;
  std::string inputs;  ///< one line
  RooflinePoints points;
  RooflineCeilings ceilings;
  std::vector<MeasuredPoint> measured;
  std::int64_t measured_elsewhere = 0;  ///< measurements of ops that the phase does not run

  /// "llava-next-7b, prefill on h200-sxm"
  std::string title() const { return model + ", " + phase + " on " + device; }
  double share(const RooflinePoint& p) const {
    return points.total.time.value > 0 ? p.time().value / points.total.time.value : 0;
  }
};

/// Pairs a measurement with the points that it measures: an op that several points run is a measurement of each. One
/// that was not timed is passed over.
void add_measurement(RooflineView& view, const MeasuredOp& measured);

}  // namespace vlmest::tool
