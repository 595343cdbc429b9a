// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/evidence/text/memory_series.hpp>

#include "evidence/evidence.hpp"

namespace vlmest::tool {

/// The figures that a server printed, and memory over the rows: of the rank whose memory grows, else of the first.
/// Memory that grows is noted in the failure, or is the verdict where there is none. `e.kind` must be set.
void add_series(Evidence& e, const diagnose::MemorySeries& all);

/// A number that may be NaN or infinite, which JSON has no numbers for.
nlohmann::ordered_json number_json(double v);

}  // namespace vlmest::tool
