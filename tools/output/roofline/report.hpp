// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "output/table.hpp"
#include "view.hpp"

namespace vlmest::tool {

/// Points, ceilings and measurements as docs/reference/roofline.schema.json describes them.
nlohmann::ordered_json roofline_json(const RooflineView& view);

/// The ceilings, and a table of the `top` ops that take longest.
std::string roofline_text(const RooflineView& view, std::size_t top);
std::string roofline_markdown(const RooflineView& view, std::size_t top);

/// Every op in plain numbers.
std::string roofline_csv(const RooflineView& view);

}  // namespace vlmest::tool
