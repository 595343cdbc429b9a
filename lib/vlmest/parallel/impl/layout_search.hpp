// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <vlmest/parallel/estimate_layout.hpp>
#include <vlmest/parallel/layout_search.hpp>
#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/error.hpp>
#include <vlmest/unit/parallel_for.hpp>
#include <vlmest/unit/sort_stably.hpp>

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

/// How many ranks divide layers or experts, beside replicas or stages: powers of two within a host, whose links their
/// collectives need.
inline std::vector<int> parts_of_a_host(int gpus, const Network& n) {
  std::vector<int> r;
  const std::int64_t host = n.domains.empty() ? gpus : n.domains.front().gpus;
  for (int tp = 2; tp <= host && tp < gpus && tp <= 8; tp *= 2)
    if (gpus % tp == 0) r.push_back(tp);
  return r;
}

/// Parts that a sequence is cut into at most: those of longer ones would be of a few hundred tokens.
inline constexpr int most_parts = 16;

/// Stages at most of a pipeline whose replicas divide their states: more of them leave little to divide, and each
/// length takes the search as long as several others.
inline constexpr int most_stages_divided = 16;

/// Pipelines of so many stages, with `each` times as many micro-batches; of many also those whose replicas divide their
/// states.
inline std::vector<Layout> pipelines(int gpus, int stages, std::int64_t each) {
  std::vector<Layout> r;
  for (const Schedule s : {Schedule{ScheduleKind::one_f_one_b, 1}, Schedule{ScheduleKind::interleaved, 2},
                           Schedule{ScheduleKind::gpipe, 1}}) {
    // GPipe holds all micro-batches: with many of them it is never the one.
    if (s.kind == ScheduleKind::gpipe && each > 2) continue;
    r.push_back({.dp = gpus / stages, .pp = stages, .schedule = s, .micro_batches = each * stages});
  }
  if (each > 2 && gpus > stages && stages <= most_stages_divided)
    r.push_back({.dp = gpus / stages, .pp = stages, .shard = Shard::fsdp2, .micro_batches = each * stages});
  return r;
}

/// What a part of the search found.
struct Part {
  std::vector<LaidOut> found;
  std::size_t estimates = 0;
  std::optional<Error> refused;  ///< why the last one that is not modelled is not
};

/// Estimates of one plan in several layouts. Graphs are made once for all layouts that run the same one.
class Estimates {
 public:
  explicit Estimates(const LayoutRequest& q) : q_(q) {
    estimator_.allocator = q.allocator;
    estimator_.details = false;
  }

  /// Nothing where this model is not modelled so, which `part` says then. Throws Error for what no layout helps.
  std::optional<LaidOut> of(const Layout& l, Plan plan, Part& part) {
    plan = plan_of_rank(std::move(plan), l);
    try {
      expect_modelled(l);
      train(plan);
      Estimate e = trained_;
      if (l.cp > 1) made_.reset();  // the estimator goes through the ranks
      const ParallelEstimate p = estimate_layout(estimator_, e, q_.vlm, plan, q_.device, l, q_.network, Phases::train);
      ++part.estimates;
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
      part.refused = e;
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

 private:
  void train(const Plan& plan) {
    const Made wanted{plan.checkpointing, plan.gradient_accumulation, plan.shards.ranks, plan.shards.experts,
                      plan.sequence_part.parts};
    if (made_ == wanted) return;
    made_.reset();
    estimator_.train(trained_, q_.vlm, plan, q_.device);
    made_ = wanted;
  }

  const LayoutRequest& q_;
  Estimator estimator_;
  Estimate trained_;
  using Made = std::tuple<Checkpointing, std::int64_t, int, bool, int>;  ///< what layouts change of a plan
  std::optional<Made> made_;
};

/// The search of one thread.
class Search {
 public:
  explicit Search(const LayoutRequest& q) : q_(q), estimates_(q) {}

  void replicas(Part& part) {
    for (const Layout& l : searching::replicas(q_.gpus)) attempt(l, part);
  }

  void alone(const Layout& l, Part& part) { attempt(l, part); }

  /// Sequences over `cp` ranks, in replicas of that.
  void sequences(int cp, Part& part) {
    for (const Shard s : {Shard::none, Shard::fsdp2})
      if (!attempt({.dp = q_.gpus / cp, .cp = cp, .shard = s}, part)) return;
  }

  /// Layers over `tp` ranks, in replicas and in pipelines of them.
  void divided(int tp, Part& part) {
    bool any = false;
    for (const Shard s : {Shard::none, Shard::fsdp2})
      any = attempt({.dp = q_.gpus / tp, .tp = tp, .shard = s}, part) || any;
    if (!any) return;  // no plan, or more ranks than heads
    for (int stages = 2; stages * tp <= q_.gpus && stages <= 16; stages *= 2)
      if (q_.gpus % (stages * tp) == 0)
        attempt({.dp = q_.gpus / (stages * tp), .tp = tp, .pp = stages, .micro_batches = 8 * stages}, part);
  }

  /// Experts over `ep` ranks, in replicas that divide their states.
  void experts(int ep, Part& part) { attempt({.dp = q_.gpus / ep, .ep = ep, .shard = Shard::fsdp2}, part); }

  /// Pipelines of so many stages. Those of as many micro-batches stand together: they run the same graph.
  void pipelines(int stages, Part& part) {
    std::optional<std::vector<std::int64_t>> by_time;
    for (const std::int64_t each : {2, 8}) {
      const std::vector<Layout> even = searching::pipelines(q_.gpus, stages, each);
      for (const Layout& l : even) attempt(l, part);
      if (part.found.empty()) return;  // too few layers, or none between which it can be cut
      if (each == 2) by_time = estimates_.by_time(stages, q_.plan);
      if (!by_time) continue;
      for (Layout l : even)
        if (l.schedule.kind == ScheduleKind::one_f_one_b) {
          l.stages = *by_time;
          attempt(l, part);
        }
    }
  }

 private:
  bool attempt(const Layout& l, Part& part) {
    std::optional<LaidOut> found = estimates_.of(l, q_.plan, part);
    if (!found) return false;
    if (!found->fits && q_.plan.checkpointing == Checkpointing::off) {
      Plan checkpointed = q_.plan;
      checkpointed.checkpointing = Checkpointing::full;
      if (const std::optional<LaidOut> less = estimates_.of(l, checkpointed, part); less && less->fits) found = less;
    }
    part.found.push_back(std::move(*found));
    return true;
  }

  const LayoutRequest& q_;
  Estimates estimates_;
};

/// A part that any thread may take. Of those in a row, as pipelines of more and more stages, the first that finds
/// nothing ends the row: nor would what comes after it.
struct Task {
  std::function<void(Search&, Part&)> run;
  std::atomic<std::size_t>* row_ends = nullptr;  ///< behind which task; none where the task is in no row
};

/// What all tasks find, in their order; the last reason why one of them is not modelled.
inline std::optional<Error> run(const LayoutRequest& q, const std::vector<Task>& tasks, LayoutSearch& r) {
  std::vector<Part> parts(tasks.size());
  std::vector<Search> searches;
  for (std::size_t t = 0; t < std::min(thread_count(q.threads), tasks.size()); ++t) searches.emplace_back(q);
  parallel_for(
      tasks.size(), std::span(searches),
      [&](Search& s, std::size_t i) {
        const Task& task = tasks[i];
        if (task.row_ends && *task.row_ends < i) return;
        task.run(s, parts[i]);
        if (!task.row_ends || !parts[i].found.empty()) return;
        std::size_t end = *task.row_ends;
        while (i < end && !task.row_ends->compare_exchange_weak(end, i)) {
        }
      },
      [](std::size_t) {});
  std::optional<Error> refused;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].row_ends && *tasks[i].row_ends < i) continue;
    r.estimates += parts[i].estimates;
    if (parts[i].refused) refused = parts[i].refused;
    std::move(parts[i].found.begin(), parts[i].found.end(), std::back_inserter(r.found));
  }
  return refused;
}

}  // namespace searching

VLMEST_INLINE LayoutSearch search_layouts(const LayoutRequest& q) {
  using searching::Part;
  using searching::Search;
  std::atomic<std::size_t> divided_end{SIZE_MAX}, experts_end{SIZE_MAX}, pipelines_end{SIZE_MAX};
  std::vector<searching::Task> tasks{{[](Search& s, Part& p) { s.replicas(p); }},
                                     {[&q](Search& s, Part& p) { s.alone({.tp = q.gpus}, p); }}};
  for (const int tp : searching::parts_of_a_host(q.gpus, q.network))
    tasks.push_back({[tp](Search& s, Part& p) { s.divided(tp, p); }, &divided_end});
  tasks.push_back({[&q](Search& s, Part& p) { s.alone({.ep = q.gpus}, p); }});
  for (const int ep : searching::parts_of_a_host(q.gpus, q.network))
    tasks.push_back({[ep](Search& s, Part& p) { s.experts(ep, p); }, &experts_end});
  for (int stages = 2; stages <= q.gpus; ++stages)
    if (q.gpus % stages == 0)
      tasks.push_back({[stages](Search& s, Part& p) { s.pipelines(stages, p); }, &pipelines_end});
  LayoutSearch r;
  std::optional<Error> refused = searching::run(q, tasks, r);

  // Parts of sequences send more than replicas, for memory that whole sequences do not have.
  if (std::none_of(r.found.begin(), r.found.end(), [](const LaidOut& l) { return l.fits; })) {
    std::atomic<std::size_t> sequences_end{SIZE_MAX};
    std::vector<searching::Task> parts;
    for (int cp = 2; cp <= q.gpus && cp <= searching::most_parts; cp *= 2)
      if (q.gpus % cp == 0) parts.push_back({[cp](Search& s, Part& p) { s.sequences(cp, p); }, &sequences_end});
    if (const std::optional<Error> why = searching::run(q, parts, r); why && !refused) refused = why;
  }
  if (r.found.empty() && refused) throw *refused;
  sort_stably(r.found, [](const LaidOut& a, const LaidOut& b) {
    if (a.fits != b.fits) return a.fits;
    return a.tokens_per_second > b.tokens_per_second;
  });
  return r;
}

}  // namespace vlmest::parallel
