// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>

#include "estimate_report.hpp"

namespace vlmest::tool {

/// What helps a run that does not fit: at most three actions of different kinds. First those that make it fit alone, in
/// the order of diagnose::actions: what computes the same before what does not, then the least time; then those that
/// save most. Each is estimated anew, which takes as long as some dozen estimates.
std::vector<diagnose::Action> find_helps(const Reported& r, diagnose::Mode mode);

}  // namespace vlmest::tool
