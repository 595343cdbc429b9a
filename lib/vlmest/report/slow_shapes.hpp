// SPDX-License-Identifier: Apache-2.0
#pragma once

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
std::vector<SlowShape> slow_shapes(const Graph& g, std::span<const Repeated> stretches, const Device& device);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/slow_shapes.hpp>
#endif
