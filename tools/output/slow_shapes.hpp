// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "estimate_report.hpp"
#include "table.hpp"

namespace vlmest::tool {

/// Ops whose shapes cost more than their arithmetic, in the prefill or, where inference is not estimated, in the
/// training step: which, how much time, and which shape would be fast. Without rows where there are none.
Table slow_shapes_table(const Reported& r, const ReportOptions& o);
/// How many there are, and the time that faster ones would save.
struct Slowness {
  std::size_t shapes = 0;
  Seconds saves{};
};
Slowness slowness(const Reported& r, const ReportOptions& o);
nlohmann::ordered_json slow_shapes_json(const Reported& r, const ReportOptions& o);

}  // namespace vlmest::tool
