// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "view.hpp"

namespace vlmest::tool {

/// The roofline as an SVG document of its own, or as an element of a page. Two panels, both on logarithmic axes:
/// - FLOP/s over FLOPs per byte (Williams, Waterman, Patterson, CACM 52(4), 2009) for ops that count FLOPs;
/// - bytes/s over bytes per kernel for the others, whose arithmetic nobody counts: the same figure with the bandwidth
///   as its roof and the floor under a kernel's time as its slope.
/// A marker's area is its share of the phase's time; points in the same place share a marker. Text in the titles of the
/// markers tells the rest.
std::string roofline_svg(const RooflineView& view, bool standalone);

}  // namespace vlmest::tool
