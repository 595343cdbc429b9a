// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "estimate_report.hpp"

/// What several GPUs need, and what they send each other.
namespace vlmest::tool {

/// The ranks, the collectives and the step in a few lines; nothing for one GPU.
std::string several_gpus_text(const Reported& r, const ReportOptions& options);
std::string several_gpus_markdown(const Reported& r);

nlohmann::ordered_json several_gpus_json(const parallel::ParallelEstimate& p, const ReportOptions& options);

}  // namespace vlmest::tool
