// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "estimate_report.hpp"

namespace vlmest::tool {

/// The estimate as docs/reference/estimate.schema.json describes it.
nlohmann::ordered_json to_json(const Reported& r, const ReportOptions& options);

}  // namespace vlmest::tool
