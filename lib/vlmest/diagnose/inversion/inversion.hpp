// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vlmest/diagnose/inversion/planned_allocations.hpp>
#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/diagnose/text/printed_size.hpp>
#include <vlmest/report/tensor_groups.hpp>

namespace vlmest::diagnose {

/// What is known of an allocation that failed.
struct FailedRequest {
  PrintedSize size;                      ///< of the tensor, before any rounding
  std::optional<PrintedSize> allocated;  ///< by the allocator at that moment
  RunPhase phase = RunPhase::unknown;    ///< as the traceback tells
  AllocationSite site = AllocationSite::unknown;
};

/// A tensor that may have been asked for. Tensors that are the same but for their layer are one hypothesis; the layer
/// named is the one whose turn comes closest to the memory that was allocated.
struct Hypothesis {
  DescribedTensor tensor;
  Cause cause = Cause::unknown;
  std::string phase;
  Moment moment = Moment::load;
  Bytes before{};         ///< allocated, by the estimate, when it is asked for
  std::size_t alike = 1;  ///< allocations of this kind, over all layers
  double confidence = 0;  ///< of all hypotheses together 1
  double agreement = 0;   ///< 1: nothing speaks against it
  std::string assuming;   ///< what had to be changed of the settings asked for; empty: nothing
};

namespace inversion {

/// How well the memory before an allocation agrees with what was allocated: 1 where the difference is within the
/// estimate's own error, falling to a tenth at about 10 % of it.
inline double agreement(const std::optional<PrintedSize>& allocated, Bytes before) {
  if (!allocated) return 1;
  const auto b = static_cast<double>(before.value());
  const auto low = static_cast<double>(allocated->low.value()), high = static_cast<double>(allocated->high.value());
  const double off = b < low ? low - b : b > high ? b - high : 0;
  const double usual = 0.03 * std::max(high, 1.0);
  return 1 / (1 + (off / usual) * (off / usual));
}

}  // namespace inversion

/// The allocations of a run that have the size that failed, best first. `kinds` are those of the graph that the
/// allocations are of; `origins` receives the allocation behind each hypothesis.
inline std::vector<Hypothesis> hypotheses(const Graph& g, const TensorKinds& kinds,
                                          std::span<const PlannedAllocation> all, const FailedRequest& request,
                                          std::vector<const PlannedAllocation*>* origins = nullptr) {
  struct Best {
    const PlannedAllocation* allocation = nullptr;
    double score = 0;
    std::size_t alike = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Best> groups;
  for (const PlannedAllocation& a : all) {
    if (!request.size.holds(a.tensor.bytes)) continue;
    const double score = inversion::agreement(request.allocated, a.before) * agrees(request.phase, g, a) *
                         agrees(request.site, g, kinds, a);
    const auto at = tensor_groups::cut_path(g, scope_of(g, a.tensor));
    Best& best = groups[{at.before, at.after, name_of(g, a.tensor), a.phase}];
    ++best.alike;
    if (best.allocation == nullptr || score > best.score) {
      best.allocation = &a;
      best.score = score;
    }
  }
  std::vector<Best> ranked;
  double sum = 0;
  for (const auto& [key, best] : groups) {
    ranked.push_back(best);
    sum += best.score;
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const Best& a, const Best& b) { return a.score > b.score; });
  std::vector<Hypothesis> r;
  for (const Best& best : ranked) {
    const PlannedAllocation& a = *best.allocation;
    r.push_back({.tensor = describe(g, a.tensor),
                 .cause = kinds.of(a.tensor),
                 .phase = a.phase,
                 .moment = a.moment,
                 .before = a.before,
                 .alike = best.alike,
                 .confidence = sum > 0 ? best.score / sum : 0,
                 .agreement = best.score,
                 .assuming = {}});
    if (origins != nullptr) origins->push_back(&a);
  }
  return r;
}

}  // namespace vlmest::diagnose
