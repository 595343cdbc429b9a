// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/action/action.hpp>
#include <vlmest/diagnose/text/run_signs.hpp>
#include <vlmest/diagnose/verdict.hpp>

namespace vlmest::diagnose {

/// What helps whatever model it is, by the cause: lines to type.
std::vector<Action> cause_remedies(const Verdict& v, const std::vector<FoundSign>& signs);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/oom/impl/cause_remedies.hpp>
#endif
