// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "view.hpp"

namespace vlmest::tool {

/// A few words beside a marker: "mlp.gate_proj", "self_attn attention", "norm mul".
std::string short_name(const RooflinePoint& point);

/// All about a point, in lines.
std::string describe(const RooflineView& view, const RooflinePoint& point);
std::string describe(const RooflineView& view, const MeasuredPoint& measured);

}  // namespace vlmest::tool
