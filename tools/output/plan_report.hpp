// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <vlmest/diagnose/advise/planner/budget.hpp>
#include <vlmest/diagnose/advise/planner/planner.hpp>
#include <vlmest/parallel/layout_search.hpp>

namespace vlmest::tool {

/// A plan that was made, and what it was made from.
struct ReportedPlan {
  const diagnose::PlanRequest& request;
  const diagnose::PlanAnswer& answer;
  const std::string& config;                        ///< as `--config` was given
  const std::string& device;                        ///< as `--device` was given
  std::optional<diagnose::MemoryBudget> budget{};   ///< of the best plan, for inference
  std::optional<parallel::LayoutSearch> layouts{};  ///< over several GPUs, of what was asked for
  std::string network{};                            ///< that they run over
};

/// As docs/reference/plan.schema.json describes.
nlohmann::ordered_json plan_json(const ReportedPlan& p);
std::string plan_text(const ReportedPlan& p);
std::string plan_markdown(const ReportedPlan& p);
/// One row a plan, best first.
std::string plan_csv(const ReportedPlan& p);

}  // namespace vlmest::tool
