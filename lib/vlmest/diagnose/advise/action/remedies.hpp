// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/diagnose/advise/action/action.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/verdict/slow_run/slow_run.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>

namespace vlmest::diagnose {

/// What helps against a cause that no setting of the model changes: memory that is not this run's, or not this step's.
/// The bytes are those of the evidence.
std::vector<Action> memory_remedies(const Verdict& v, const Failure& f);

/// What helps a run that is slow, with the time that the trace shows to be lost: negative costs are gains. Nothing
/// below a fiftieth of the time is named.
std::vector<Action> time_remedies(const SlowRun& s);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/action/impl/remedies.hpp>
#endif
