// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/report/slow_shapes.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest {

VLMEST_INLINE std::vector<SlowShape> slow_shapes(const Graph& g, std::span<const Repeated> stretches,
                                                 const Device& device) {
  const RooflinePoints all = place_on_roofline(g, stretches, device);
  std::vector<SlowShape> r;
  for (const RooflinePoint& p : all.points) {
    if (p.time().value < 0.01 * all.total.time.value) break;  // they are sorted by time
    if (const auto f = faster_shape(p.op, device)) r.push_back({p, *f});
  }
  std::erase_if(r, [&](const SlowShape& s) { return s.saved().value < 0.01 * all.total.time.value; });
  sort_stably(r, [](const auto& a, const auto& b) { return a.saved() > b.saved(); });
  return r;
}

}  // namespace vlmest
