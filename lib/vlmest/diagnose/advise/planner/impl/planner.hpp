// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/planner/planner.hpp>
#include <vlmest/unit/compiled.hpp>
#include <vlmest/unit/parallel_for.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::diagnose {
namespace planner {

VLMEST_INLINE std::vector<PlannedRun> ranked(std::vector<PlannedRun> all, Goal goal, std::size_t most) {
  sort_stably(all, [goal](const PlannedRun& a, const PlannedRun& b) { return rank(a, goal) < rank(b, goal); });
  std::vector<PlannedRun> r;
  for (auto& c : all) {
    if (r.size() == most) break;
    if (std::none_of(r.begin(), r.end(), [&](const PlannedRun& b) { return covers(b, c, goal); }))
      r.push_back(std::move(c));
  }
  return r;
}

VLMEST_INLINE std::vector<PlannedRun> front(const std::vector<Found>& found) {
  std::vector<const PlannedRun*> runs;
  std::vector<std::pair<std::int64_t, double>> points;
  for (const Found& f : found)
    if (f.as_is) {
      runs.push_back(&*f.as_is);
      points.emplace_back(f.as_is->outcome.peak.value(), f.as_is->outcome.per_sample().value);
    }
  std::vector<PlannedRun> r;
  for (const std::size_t i : pareto_front(points)) r.push_back(*runs[i]);
  return r;
}

VLMEST_INLINE std::optional<Candidate> in_chunks(const PlannedRun& r, const PlanRequest& q, Estimator& e) {
  const ActionEntry* chunks = action_entry(action_id("vision-chunks"));
  const std::vector<Settings> options =  // a half, a third, and so on
      chunks->options({.now = r.candidate.settings, .device = q.device, .mode = q.mode});
  if (options.empty()) return std::nullopt;
  Candidate c{options[std::min<std::size_t>(6, options.size() - 1)], r.candidate.changes, r.reach};
  c.changes.push_back(chunks);
  Found f;
  const auto o = tried(c.settings, q, e, f);
  // Less than a thousandth is the allocator's rounding.
  if (!o || o->peak.value() >= r.outcome.peak.value() / 1000 * 999) return std::nullopt;
  return c;
}

VLMEST_INLINE PlanAnswer best_of(const PlanRequest& q, std::vector<Candidate> all, std::vector<Found>& found) {
  const SearchVariable d = search_variable(q.asked, q.goal);
  std::vector<Probe> probes;  // of the combinations that there were first
  std::size_t before = 0;
  std::vector<bool> worth(all.size(), true);
  // They keep their memory from one round to the next: the first estimate of each takes several times as long.
  std::vector<Estimator> estimators(std::min(thread_count(q.threads), all.size()));
  const auto each = [&](auto&& work, auto&& done) {
    parallel_for(
        all.size() - before, std::span(estimators), [&](Estimator& e, std::size_t i) { work(e, before + i); }, done);
  };
  const auto search_all = [&] {
    found.resize(all.size());
    worth.resize(all.size(), true);
    each(
        [&](Estimator& e, std::size_t i) {
          if (!worth[i]) return;
          Found f = q.goal == Goal::fastest ? fastest(all[i], q, e)
                                            : search(all[i], d, q, e, i < probes.size() ? &probes[i] : nullptr);
          f.estimates += found[i].estimates;
          if (!f.as_is) f.as_is = found[i].as_is;
          found[i] = std::move(f);
        },
        [&](std::size_t done) {
          if (q.progress) q.progress(before + done, all.size());
        });
    before = all.size();
  };
  PlanAnswer a;
  {
    Estimator& e = estimators.front();  // what cannot be run at all says why
    Settings smallest = q.asked;
    turn(smallest, q.goal, d.least);
    evaluate(smallest, q.device, q.mode, e);
    a.vision = action::vision_path(q.mode == Mode::training ? e.training_graph() : e.graph());
  }
  if (q.goal != Goal::fastest) {
    probes.resize(all.size());
    found.resize(all.size());
    each([&](Estimator& e, std::size_t i) { probes[i] = probe(all[i], d, q, e, found[i]); }, [](std::size_t) {});
    worth = worth_a_search(all, probes);
  }
  search_all();
  std::vector<PlannedRun> runs;
  for (const auto& f : found)
    if (f.run) runs.push_back(*f.run);
  Estimator& e = estimators.front();
  for (const auto& r : ranked(runs, q.goal, q.results)) {
    const Candidate c = as_asked(r.candidate, d, q);
    if (auto more = with(c, action_id("allocator-expandable"), q.device, q.mode)) all.push_back(std::move(*more));
    if (auto more = with(c, action_id("group-by-size"), q.device, q.mode)) all.push_back(std::move(*more));
    if (auto more = in_chunks(r, q, e)) all.push_back(as_asked(std::move(*more), d, q));
  }
  if (before < all.size()) search_all();
  runs.clear();
  for (const auto& f : found) {
    a.estimates += f.estimates;
    if (f.run) runs.push_back(*f.run);
  }
  a.combinations = all.size();
  a.best = ranked(std::move(runs), q.goal, q.results);
  return a;
}

}  // namespace planner

VLMEST_INLINE PlanAnswer plan(const PlanRequest& q) {
  std::vector<planner::Found> found;
  PlanAnswer a = planner::best_of(q, candidates(q.asked, q.device, q.mode), found);
  a.asked = found.front().run;
  if (a.best.empty())
    if (auto more = adapter_candidates(q.asked, q.device, q.mode); !more.empty()) {
      std::vector<planner::Found> with_adapters;
      PlanAnswer b = planner::best_of(q, std::move(more), with_adapters);
      a.best = std::move(b.best);
      a.adapters = !a.best.empty();
      a.combinations += b.combinations;
      a.estimates += b.estimates;
      std::move(with_adapters.begin(), with_adapters.end(), std::back_inserter(found));
    }
  a.front = planner::front(found);
  return a;
}

}  // namespace vlmest::diagnose
