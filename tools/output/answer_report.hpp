// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimate_report.hpp"
#include "helps.hpp"

namespace vlmest::tool {

/// What helps, of each mode that was asked for and does not fit.
struct Answer {
  std::optional<std::vector<diagnose::Action>> inference, training;
};

/// The actions where something does not fit; nothing else is estimated.
Answer find_answer(const Reported& r, const ReportOptions& options);

/// One screen, 40 lines of 100 columns: the verdict first, what was asked for, memory by what it is for, the tensors
/// that make the peak, times, and, where it does not fit, what helps.
std::string answer_text(const Reported& r, const ReportOptions& options, const Answer& answer);

}  // namespace vlmest::tool
