// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <vlmest/analysis/faster_shape.hpp>
#include <vlmest/report/roofline_points.hpp>

namespace vlmest {

/// Equal executions of an op whose shape costs more than its arithmetic.
struct SlowShape {
  RooflinePoint point;
  FasterShape faster;

  Seconds saved() const { return faster.saved * static_cast<double>(point.count); }
};

/// Those of these stretches of a graph that cost at least a hundredth of their time, by what another shape would save.
inline std::vector<SlowShape> slow_shapes(const Graph& g, std::span<const Repeated> stretches, const Device& device) {
  const RooflinePoints all = place_on_roofline(g, stretches, device);
  std::vector<SlowShape> r;
  for (const RooflinePoint& p : all.points) {
    if (p.time().value < 0.01 * all.total.time.value) break;  // they are sorted by time
    if (const auto f = faster_shape(p.op, device)) r.push_back({p, *f});
  }
  std::erase_if(r, [&](const SlowShape& s) { return s.saved().value < 0.01 * all.total.time.value; });
  std::stable_sort(r.begin(), r.end(), [](const auto& a, const auto& b) { return a.saved() > b.saved(); });
  return r;
}

}  // namespace vlmest
