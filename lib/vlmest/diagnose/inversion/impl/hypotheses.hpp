// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include <vlmest/diagnose/inversion/hypotheses.hpp>
#include <vlmest/diagnose/inversion/site_match.hpp>
#include <vlmest/report/tensor_groups.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace inversion {

VLMEST_INLINE double agreement(const std::optional<PrintedSize>& allocated, Bytes before) {
  if (!allocated) return 1;
  const auto b = static_cast<double>(before.value());
  const auto low = static_cast<double>(allocated->low.value()), high = static_cast<double>(allocated->high.value());
  const double off = b < low ? low - b : b > high ? b - high : 0;
  const double usual = 0.03 * std::max(high, 1.0);
  return 1 / (1 + (off / usual) * (off / usual));
}

}  // namespace inversion

VLMEST_INLINE std::vector<Hypothesis> hypotheses(const Graph& g, const TensorKinds& kinds,
                                                 std::span<const PlannedAllocation> all, const FailedRequest& request,
                                                 std::vector<const PlannedAllocation*>* origins) {
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
    Best& best = groups[{at.before, at.after, name_of(g, a.tensor), std::string(a.phase)}];
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
  sort_stably(ranked, [](const Best& a, const Best& b) { return a.score > b.score; });
  std::vector<Hypothesis> r;
  for (const Best& best : ranked) {
    const PlannedAllocation& a = *best.allocation;
    r.push_back({.tensor = describe(g, a.tensor),
                 .cause = kinds.of(a.tensor),
                 .phase = std::string(a.phase),
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
