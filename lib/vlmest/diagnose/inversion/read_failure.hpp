// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vlmest/diagnose/failure/failure.hpp>
#include <vlmest/diagnose/inversion/hypotheses.hpp>
#include <vlmest/diagnose/inversion/reading.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::diagnose {

namespace reading {

std::vector<MemoryPart> live_at(const Timeline& timeline, const TensorKinds& kinds, const PlannedAllocation& a);

/// Keys or values of a layer while a dense cache grows: every length from the prompt's on comes by, of which the graph
/// holds one. The allocation of that one, with the length that fits the size.
std::optional<Hypothesis> grown_cache(const Graph& g, const TensorKinds& kinds,
                                      const std::vector<PlannedAllocation>& all, const FailedRequest& request);

}  // namespace reading

/// Reads a failure as an allocation of a run of `plan`. `estimator` is used for it. Throws Error where the plan is
/// impossible.
Reading read_failure(const Vlm& vlm, const Plan& plan, const Device& device, Mode mode, const Failure& failure,
                     Estimator& estimator, std::string assuming = {});

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/read_failure.hpp>
#endif
