// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/evidence/text/run_sign.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

/// What helps against what the lines of a text tell of, whatever model it is.
namespace vlmest::diagnose {

/// The rows that the verdict and the signs have, and, where a picture is larger than an engine's encoder cache, what
/// its figures ask for.
std::vector<Action> sign_actions(const Verdict& v, const std::vector<FoundSign>& signs);

/// Whether the lines are printed by a runtime that torch's settings do nothing for.
bool of_other_runtime(const std::vector<FoundSign>& signs);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/sign_actions.hpp>
#endif
