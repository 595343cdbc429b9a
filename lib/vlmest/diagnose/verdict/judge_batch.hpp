// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/run/settings.hpp>
#include <vlmest/diagnose/inversion/solution.hpp>
#include <vlmest/diagnose/verdict/verdict.hpp>
#include <vlmest/report/estimate.hpp>

/// A training whose batch nobody tells.
namespace vlmest::diagnose {

/// The batch with which the run would have allocated what it had: its peak grows by as much with each sequence, so that
/// two estimates, of one sequence and of two, give it. The cause is what a training keeps of its sequences; the tensor
/// is the one that has the size asked for with about that batch, within a quarter, where one of `solutions` (of the
/// size alone) does: then the two figures of the message agree on it. Nothing where the run needs no second sequence,
/// or more than 4,096. Before such a batch is thought of, more than a run explains would be called a leak.
std::optional<Verdict> judge_batch(const Failure& f, const Settings& settings, const Device& device,
                                   const std::vector<Solution>& solutions, Estimator& estimator);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/verdict/impl/judge_batch.hpp>
#endif
