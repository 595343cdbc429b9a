// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <vlmest/report/estimate.hpp>

#include "report_options.hpp"

namespace vlmest::tool {

/// The estimate as docs/reference/estimate.schema.json describes it.
nlohmann::ordered_json to_json(const Vlm& vlm, const Plan& plan, const Device& device, const Estimate& e,
                               const Graph& g, const ReportOptions& options);

}  // namespace vlmest::tool
