// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <vlmest/parallel/divided_layers.hpp>
#include <vlmest/parallel/layout_search.hpp>
#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/parallel/several_gpus.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::parallel {

namespace searching {

/// Replicas, by what they divide.
inline std::vector<Layout> replicas(int gpus) {
  std::vector<Layout> r;
  for (const Shard s : {Shard::none, Shard::zero1, Shard::zero2, Shard::zero3, Shard::fsdp2})
    r.push_back({.dp = gpus, .shard = s});
  r.push_back({.dp = gpus, .shard = Shard::fsdp2, .reshard_after_forward = false});
  return r;
}

/// How many ranks divide layers, beside replicas or stages: powers of two within a host, whose links their collectives
/// need.
inline std::vector<int> divisors_of_layers(int gpus, const Network& n) {
  std::vector<int> r;
  const std::int64_t host = n.domains.empty() ? gpus : n.domains.front().gpus;
  for (int tp = 2; tp <= host && tp < gpus && tp <= 8; tp *= 2)
    if (gpus % tp == 0) r.push_back(tp);
  return r;
}

/// Pipelines of so many stages.
inline std::vector<Layout> pipelines(int gpus, int stages) {
  std::vector<Layout> r;
  for (const std::int64_t each : {2, 8})
    for (const Schedule s : {Schedule{ScheduleKind::one_f_one_b, 1}, Schedule{ScheduleKind::interleaved, 2},
                             Schedule{ScheduleKind::gpipe, 1}}) {
      // GPipe holds all micro-batches: with many of them it is never the one.
      if (s.kind == ScheduleKind::gpipe && each > 2) continue;
      r.push_back({.dp = gpus / stages, .pp = stages, .schedule = s, .micro_batches = each * stages});
    }
  return r;
}

/// Estimates of one plan in several layouts. Graphs are made once for all layouts that run the same one.
class Estimates {
 public:
  explicit Estimates(const LayoutRequest& q) : q_(q) {
    estimator_.allocator = q.allocator;
    estimator_.details = false;
  }

  /// Nothing where this model is not modelled so, which `refused` says then. Throws Error for what no layout helps.
  std::optional<LaidOut> of(const Layout& l, Plan plan) {
    if (l.pp > 1) plan.gradient_accumulation = micro_batches(l);
    plan.shards = layer_shards(l);
    try {
      expect_modelled(l);
      train(plan);
      Estimate e = trained_;
      const bool divided = divides_layers_alone(l);
      const ParallelEstimate p = divided
                                     ? estimate_divided(estimator_, e, plan, q_.device, l, q_.network, Phases::train)
                                     : estimate_several(estimator_, e, plan, q_.device, l, q_.network, Phases::train);
      ++count;
      LaidOut r{.layout = l, .plan = std::move(plan), .most = p.ranks.front()};
      for (const RankEstimate& rank : p.ranks)
        if (rank.peak > r.most.peak) r.most = rank;
      r.fits = e.training.fits;
      r.outside = p.outside;
      r.step = p.step;
      r.exposed = p.exposed();
      r.bubble_share = p.bubble_share;
      r.tokens_per_second = p.tokens_per_second;
      r.mfu = p.mfu;
      r.lower_bound = is_zero(l.shard);
      return r;
    } catch (const Error& e) {
      if (!e.where.starts_with("layout.") || e.where == "layout.network") throw;
      refused = e;
      return std::nullopt;
    }
  }

  /// Layers of the language model by the time that stages take; nothing where even ones are as good.
  std::optional<std::vector<std::int64_t>> by_time(int stages, Plan plan) {
    plan.gradient_accumulation = 2 * stages;
    train(plan);
    std::vector<std::int64_t> r = balanced_layers(estimator_.training_graph(), stages, estimator_.training_works());
    const auto [least, most] = std::minmax_element(r.begin(), r.end());
    if (r.empty() || *most - *least <= 1) return std::nullopt;
    return r;
  }

  std::size_t count = 0;
  std::optional<Error> refused;

 private:
  void train(const Plan& plan) {
    const Made wanted{plan.checkpointing, plan.gradient_accumulation, plan.shards.ranks, plan.shards.experts};
    if (made_ == wanted) return;
    made_.reset();
    estimator_.train(trained_, q_.vlm, plan, q_.device);
    made_ = wanted;
  }

  const LayoutRequest& q_;
  Estimator estimator_;
  Estimate trained_;
  using Made = std::tuple<Checkpointing, std::int64_t, int, bool>;  ///< what layouts change of a plan
  std::optional<Made> made_;
};

}  // namespace searching

VLMEST_INLINE LayoutSearch search_layouts(const LayoutRequest& q) {
  searching::Estimates estimates(q);
  LayoutSearch r;
  const auto attempt = [&](const Layout& l) {
    std::optional<LaidOut> found = estimates.of(l, q.plan);
    if (!found) return false;
    if (!found->fits && q.plan.checkpointing == Checkpointing::off) {
      Plan checkpointed = q.plan;
      checkpointed.checkpointing = Checkpointing::full;
      if (const std::optional<LaidOut> less = estimates.of(l, checkpointed); less && less->fits) found = less;
    }
    r.found.push_back(std::move(*found));
    return true;
  };
  for (const Layout& l : searching::replicas(q.gpus)) attempt(l);
  attempt({.tp = q.gpus});
  const std::vector<int> tps = searching::divisors_of_layers(q.gpus, q.network);
  for (const int tp : tps) {
    bool any = false;
    for (const Shard s : {Shard::none, Shard::fsdp2}) any = attempt({.dp = q.gpus / tp, .tp = tp, .shard = s}) || any;
    if (!any) break;  // no plan, or more ranks than heads
    for (int stages = 2; stages * tp <= q.gpus && stages <= 16; stages *= 2)
      if (q.gpus % (stages * tp) == 0)
        attempt({.dp = q.gpus / (stages * tp), .tp = tp, .pp = stages, .micro_batches = 8 * stages});
  }
  attempt({.ep = q.gpus});
  for (int stages = 2; stages <= q.gpus; ++stages) {
    if (q.gpus % stages != 0) continue;
    bool any = false;
    for (Layout& l : searching::pipelines(q.gpus, stages)) any = attempt(l) || any;
    if (!any) break;  // too few layers, or none between which it can be cut: nor can more stages
    if (const auto layers = estimates.by_time(stages, q.plan))
      for (Layout& l : searching::pipelines(q.gpus, stages))
        if (l.schedule.kind == ScheduleKind::one_f_one_b) {
          l.stages = *layers;
          attempt(l);
        }
  }
  if (r.found.empty() && estimates.refused) throw *estimates.refused;
  r.estimates = estimates.count;
  std::stable_sort(r.found.begin(), r.found.end(), [](const LaidOut& a, const LaidOut& b) {
    if (a.fits != b.fits) return a.fits;
    return a.tokens_per_second > b.tokens_per_second;
  });
  return r;
}

}  // namespace vlmest::parallel
