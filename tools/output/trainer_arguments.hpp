// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/diagnose/advise/planner/planner.hpp>

namespace vlmest::tool {

/// The lines of Python, and of the shell that starts it, that train with these settings: transformers 5 (Trainer,
/// TrainingArguments), peft and bitsandbytes. `vision`: path of the vision tower's module. What no argument of the
/// Trainer asks for stands in the lines of the changes themselves (ActionEntry::how), last.
std::vector<std::string> trainer_arguments(const diagnose::PlanRequest& asked, const diagnose::PlannedRun& run,
                                           const std::string& vision);

}  // namespace vlmest::tool
