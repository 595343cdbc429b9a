// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include <vlmest/parallel/sequence_parts.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace sequence_parts {

/// Ranks of one group that meet as many keys after theirs as before, or all earlier, or all later ones; and how many.
inline std::vector<std::pair<int, int>> distinct(int parts) {
  if (parts == 2) return {{0, 1}, {1, 1}};
  return {{0, 1}, {1, parts - 2}, {parts - 1, 1}};
}

}  // namespace sequence_parts

VLMEST_INLINE ParallelEstimate estimate_sequence_parts(Estimator& estimator, Estimate& e, const Vlm& vlm,
                                                       const Plan& plan, const Device& device, const Layout& layout,
                                                       const Network& network) {
  const Estimate whole = e;
  const auto of_rank = [&](int part, Estimate& into) {
    Plan own = plan;
    own.sequence_part = sequence_part(layout, part);
    if (part > 0) estimator.train(into, vlm, own, device);
    return estimate_several(estimator, into, own, device, layout, network, Phases::train);
  };
  ParallelEstimate r = of_rank(0, e);
  r.ranks.front().ranks = layout.dp;
  int most = 0, made = 0;
  bool all_fit = e.training.fits;
  for (const auto& [part, count] : sequence_parts::distinct(layout.cp)) {
    if (part == 0) continue;
    Estimate own = whole;
    ParallelEstimate p = of_rank(part, own);
    made = part;
    RankEstimate& rank = p.ranks.front();
    rank.rank = part;
    rank.ranks = std::int64_t{layout.dp} * count;
    all_fit = all_fit && own.training.fits;
    const Seconds slowest = std::max(r.step, p.step);
    std::vector<RankEstimate> ranks = std::move(r.ranks);
    ranks.push_back(rank);
    if (rank.peak > e.training.peak) {
      most = part;
      e = std::move(own);
      r = std::move(p);
    }
    r.ranks = std::move(ranks);
    // All wait for the slowest.
    if (slowest > r.step) {
      r.tokens_per_second *= r.step.value / slowest.value;
      r.mfu *= r.step.value / slowest.value;
      r.step = slowest;
    }
  }
  if (made != most) {
    Estimate again = whole;
    Plan own = plan;
    own.sequence_part = sequence_part(layout, most);
    estimator.train(again, vlm, own, device);
  }
  e.training.fits = all_fit;
  return r;
}

}  // namespace vlmest::parallel
