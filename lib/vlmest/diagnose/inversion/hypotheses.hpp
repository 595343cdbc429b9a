// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <vlmest/diagnose/evidence/stack/traceback.hpp>
#include <vlmest/diagnose/evidence/text/printed_size.hpp>
#include <vlmest/diagnose/inversion/hypothesis.hpp>
#include <vlmest/diagnose/inversion/planned_allocations.hpp>
#include <vlmest/diagnose/inversion/tensor_kinds.hpp>
#include <vlmest/report/live_tensor.hpp>

namespace vlmest::diagnose {

/// What is known of an allocation that failed.
struct FailedRequest {
  PrintedSize size;                      ///< of the tensor, before any rounding
  std::optional<PrintedSize> allocated;  ///< by the allocator at that moment
  RunPhase phase = RunPhase::unknown;    ///< as the traceback tells
  AllocationSite site = AllocationSite::unknown;
};

namespace inversion {

/// How well the memory before an allocation agrees with what was allocated: 1 where the difference is within the
/// estimate's own error, falling to a tenth at about 10 % of it.
double agreement(const std::optional<PrintedSize>& allocated, Bytes before);

}  // namespace inversion

/// The allocations of a run that have the size that failed, best first. `kinds` are those of the graph that the
/// allocations are of; `origins` receives the allocation behind each hypothesis.
std::vector<Hypothesis> hypotheses(const Graph& g, const TensorKinds& kinds, std::span<const PlannedAllocation> all,
                                   const FailedRequest& request,
                                   std::vector<const PlannedAllocation*>* origins = nullptr);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/inversion/impl/hypotheses.hpp>
#endif
