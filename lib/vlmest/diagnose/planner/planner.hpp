// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vlmest/diagnose/planner/parallel.hpp>
#include <vlmest/diagnose/planner/pareto.hpp>
#include <vlmest/diagnose/planner/search.hpp>

namespace vlmest::diagnose {

struct PlanAnswer {
  std::optional<PlannedRun> asked;  ///< with nothing changed but what the goal turns; empty where that does not fit
  std::vector<PlannedRun> best;     ///< ranked; empty where nothing fits
  /// Memory against time of what was asked for, fitting or not: no combination of actions needs less memory than one
  /// of these and less time.
  std::vector<PlannedRun> front;
  /// Full training does not fit, whatever is changed: these are plans that train adapters.
  bool adapters = false;
  std::size_t combinations = 0;
  std::size_t estimates = 0;
  std::string vision;  ///< path of the vision tower's module, which lines of code name
};

namespace planner {

/// What changes nothing that is computed comes first, then what reaches furthest, then the least time, then the fewest
/// changes. Times are ranked by the percent (same_time).
inline auto rank(const PlannedRun& r, Goal goal) {
  const std::int64_t reach = goal == Goal::fastest ? 0 : r.reach;
  const auto percent = std::llround(std::log(std::max(r.cost, 1e-12)) * 100);
  return std::tuple(r.candidate.loses() != Loses::nothing, -reach, percent, r.candidate.changes.size(), r.cost);
}

/// a is in nothing worse than b.
inline bool covers(const PlannedRun& a, const PlannedRun& b, Goal goal) {
  return a.candidate.loses() <= b.candidate.loses() && (goal == Goal::fastest || a.reach >= b.reach) &&
         a.cost <= b.cost * same_time && a.candidate.changes.size() <= b.candidate.changes.size();
}

inline std::vector<PlannedRun> ranked(std::vector<PlannedRun> all, Goal goal, std::size_t most) {
  std::stable_sort(all.begin(), all.end(),
                   [goal](const PlannedRun& a, const PlannedRun& b) { return rank(a, goal) < rank(b, goal); });
  std::vector<PlannedRun> r;
  for (auto& c : all) {
    if (r.size() == most) break;
    if (std::none_of(r.begin(), r.end(), [&](const PlannedRun& b) { return covers(b, c, goal); }))
      r.push_back(std::move(c));
  }
  return r;
}

inline std::vector<PlannedRun> front(const std::vector<Found>& found) {
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

/// A run with its tower on an eighth of the images at a time, where that leaves memory to go further with: little time
/// for most of what the tower's temporaries take.
inline std::optional<Candidate> in_chunks(const PlannedRun& r, const PlanRequest& q, Estimator& e) {
  const ActionEntry* chunks = action_entry("vision-chunks");
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
/// A candidate at the size that was asked for.
inline Candidate as_asked(Candidate c, const Dial& d, const PlanRequest& q) {
  turn(c.settings, q.goal, d.asked);
  if (q.goal == Goal::fastest) c.settings.plan.batch = q.asked.plan.batch;
  if (q.goal == Goal::fastest) c.settings.plan.gradient_accumulation = q.asked.plan.gradient_accumulation;
  return c;
}

/// The best of these combinations; `found` receives what each of them leads to, what is tried besides at the end.
inline PlanAnswer best_of(const PlanRequest& q, std::vector<Candidate> all, std::vector<Found>& found) {
  const Dial d = dial(q.asked, q.goal);
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
    if (auto more = with(c, "allocator-expandable", q.device, q.mode)) all.push_back(std::move(*more));
    if (auto more = with(c, "group-by-size", q.device, q.mode)) all.push_back(std::move(*more));
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

/// The settings that fit, best first, out of every combination of the actions in plan_knobs with what was asked for;
/// what reaches furthest is tried with expandable segments, in batches of images of one size, and with its tower in
/// chunks, too. A combination that another one beats at two sizes in memory, in its growth, in time and in the number
/// of changes is not searched for its largest size. Where full training fits in none of them, adapters are tried. The
/// order of the answers does not depend on the number of threads. Throws Error where what was asked for cannot be
/// estimated at any size, or has no such goal.
inline PlanAnswer plan(const PlanRequest& q) {
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
