// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "view.hpp"

namespace vlmest::tool {

/// The chart and a table of its ops as one HTML page that needs nothing else: no other file, no network. Without
/// scripts the chart and the table are there all the same; with them it sorts, searches, and shows the markers' texts.
std::string roofline_page(const RooflineView& view);

}  // namespace vlmest::tool
