// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <vlmest/diagnose/advise/planner/pareto.hpp>
#include <vlmest/diagnose/advise/planner/search.hpp>

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

std::vector<PlannedRun> ranked(std::vector<PlannedRun> all, Goal goal, std::size_t most);

std::vector<PlannedRun> front(const std::vector<Found>& found);

/// A run with its tower on an eighth of the images at a time, where that leaves memory to go further with: little time
/// for most of what the tower's temporaries take.
std::optional<Candidate> in_chunks(const PlannedRun& r, const PlanRequest& q, Estimator& e);
/// A candidate at the size that was asked for.
inline Candidate as_asked(Candidate c, const SearchVariable& d, const PlanRequest& q) {
  turn(c.settings, q.goal, d.asked);
  if (q.goal == Goal::fastest) c.settings.plan.batch = q.asked.plan.batch;
  if (q.goal == Goal::fastest) c.settings.plan.gradient_accumulation = q.asked.plan.gradient_accumulation;
  return c;
}

/// The best of these combinations; `found` receives what each of them leads to, what is tried besides at the end.
PlanAnswer best_of(const PlanRequest& q, std::vector<Candidate> all, std::vector<Found>& found);

}  // namespace planner

/// The settings that fit, best first, out of every combination of the actions in plan_knobs with what was asked for;
/// what reaches furthest is tried with expandable segments, in batches of images of one size, and with its tower in
/// chunks, too. A combination that another one beats at two sizes in memory, in its growth, in time and in the number
/// of changes is not searched for its largest size. Where full training fits in none of them, adapters are tried. The
/// order of the answers does not depend on the number of threads. Throws Error where what was asked for cannot be
/// estimated at any size, or has no such goal.
PlanAnswer plan(const PlanRequest& q);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/planner/impl/planner.hpp>
#endif
