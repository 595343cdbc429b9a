// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "panel.hpp"
#include "view.hpp"

namespace vlmest::tool {

/// Which coordinates a panel gives its points: FLOP/s over FLOPs per byte, or bytes/s over bytes per kernel.
struct Coordinates {
  bool flops = true;

  /// The panel is the one of this op: it counts FLOPs, or not. What moves no bytes has no place on either.
  bool shows(const RooflinePoint& p) const;
  double x(const RooflinePoint& p, Bytes moved) const;
  double y(const RooflinePoint& p, Bytes moved, Seconds time) const;
};

/// Predicted points that share a place.
struct Place {
  double x = 0, y = 0;  ///< pixels
  std::vector<std::size_t> points;
  double share = 0;  ///< of the time, all of them together
};

/// A measurement: of one op, though perhaps of several points in one place.
struct MeasuredPlace {
  double x = 0, y = 0;                      ///< pixels
  double predicted_x = 0, predicted_y = 0;  ///< of the point
  std::vector<std::size_t> points;
  const MeasuredPoint* measured = nullptr;
};

/// The largest first, so that the small ones are drawn on top.
std::vector<Place> places(const RooflineView& view, const Coordinates& c, const Panel& panel);
std::vector<MeasuredPlace> measured_places(const RooflineView& view, const Coordinates& c, const Panel& panel);

}  // namespace vlmest::tool
