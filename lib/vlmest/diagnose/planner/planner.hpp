// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <vlmest/diagnose/planner/candidates.hpp>
#include <vlmest/diagnose/planner/goal.hpp>
#include <vlmest/diagnose/planner/largest_that_fits.hpp>
#include <vlmest/diagnose/planner/parallel.hpp>
#include <vlmest/diagnose/planner/pareto.hpp>

namespace vlmest::diagnose {

struct PlanRequest {
  Settings asked;
  Device device;  ///< its usable_bytes is the limit: within_memory()
  Mode mode = Mode::training;
  Goal goal = Goal::max_batch;
  std::size_t results = 10;
  unsigned threads = 0;  ///< 0: one for each processor
  /// Told how many of how many combinations are done, never twice at a time.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

/// Settings that were estimated.
struct PlannedRun {
  Candidate candidate;
  Outcome outcome;
  std::int64_t reach = 0;  ///< of the goal's dial
  double cost = 0;         ///< seconds of a sequence, or of a token where plans differ in their sequences' length
};

struct PlanAnswer {
  std::optional<PlannedRun> asked;  ///< with nothing changed but what the goal turns; empty where that does not fit
  std::vector<PlannedRun> best;     ///< ranked; empty where nothing fits
  /// Memory against time of what was asked for, fitting or not: no combination of actions needs less memory than one
  /// of these and less time.
  std::vector<PlannedRun> front;
  std::size_t combinations = 0;
  std::size_t estimates = 0;
  std::string vision;  ///< path of the vision tower's module, which lines of code name
};

/// The device with no more memory for the framework's allocator than that. A GPU that has less stays as it is.
inline Device within_memory(Device d, Bytes limit) {
  d.usable_bytes = std::min(d.usable_bytes, limit);
  return d;
}

namespace planner {

/// What one combination leads to.
struct Found {
  std::optional<PlannedRun> run;    ///< that reaches furthest
  std::optional<PlannedRun> as_is;  ///< at the size that was asked for
  std::size_t estimates = 0;
};

inline PlannedRun planned(Candidate c, const Outcome& o, const PlanRequest& q, std::int64_t reach) {
  double cost = o.per_sample().value;
  if (q.goal == Goal::max_seq || q.goal == Goal::max_pixels)
    cost /= static_cast<double>(make_sequences(c.settings.vlm, c.settings.plan).seq);
  return {std::move(c), o, reach, cost};
}

inline std::optional<Outcome> tried(const Settings& s, const PlanRequest& q, Estimator& e, Found& f) {
  ++f.estimates;
  try {
    return evaluate(s, q.device, q.mode, e);
  } catch (const Error&) {
    return std::nullopt;  // what cannot be estimated does not fit
  }
}

inline Found search(const Candidate& c, const Dial& d, const PlanRequest& q, Estimator& e) {
  Found f;
  std::optional<Outcome> best;
  std::int64_t at = 0;
  Settings s = c.settings;
  const auto limit = static_cast<double>(q.device.usable_bytes.value());
  const auto n =
      largest_that_fits(d.least, d.most, c.first > 0 ? c.first : d.asked, limit, d.window, [&](std::int64_t value) {
        s = c.settings;
        turn(s, q.goal, value);
        const auto o = tried(s, q, e, f);
        if (!o) return Fit{};
        if (value == d.asked) f.as_is = planned({s, c.changes}, *o, q, value);
        if (o->fits && value > at) {
          best = o;
          at = value;
        }
        return Fit{o->fits, static_cast<double>(o->peak.value())};
      });
  if (!n) return f;
  s = c.settings;
  turn(s, q.goal, at);
  f.run = planned({std::move(s), c.changes}, *best, q, at);
  return f;
}

/// What a combination takes at the size that was asked for and at a larger one.
struct Probe {
  std::optional<Outcome> small, large;
};
inline Probe probe(const Candidate& c, const Dial& d, const PlanRequest& q, Estimator& e, Found& f) {
  Settings s = c.settings;
  turn(s, q.goal, d.asked);
  Probe p{tried(s, q, e, f), {}};
  if (p.small) f.as_is = planned(Candidate{s, c.changes}, *p.small, q, d.asked);
  s = c.settings;
  turn(s, q.goal, d.asked > d.most / 2 ? d.most : d.asked * 2);
  p.large = tried(s, q, e, f);
  return p;
}
/// a needs no more than b at both sizes, grows no faster, and changes no more: b reaches no further.
inline bool beats(const Candidate& a, const Probe& x, const Candidate& b, const Probe& y) {
  if (!x.small || !x.large || !y.small || !y.large) return false;
  const auto less = [](const Outcome& m, const Outcome& n) {
    return m.peak <= n.peak && m.per_sample().value <= n.per_sample().value * 1.01;
  };
  return a.loses() <= b.loses() && a.changes.size() <= b.changes.size() && less(*x.small, *y.small) &&
         less(*x.large, *y.large) && x.large->peak - x.small->peak <= y.large->peak - y.small->peak;
}
/// Which combinations are worth a search: those that none beats, the first of equals.
inline std::vector<bool> worth_a_search(const std::vector<Candidate>& all, const std::vector<Probe>& probes) {
  std::vector<bool> r(all.size(), true);
  for (std::size_t b = 1; b < all.size(); ++b)
    for (std::size_t a = 0; a < all.size() && r[b]; ++a)
      if (a != b && r[a] && beats(all[a], probes[a], all[b], probes[b])) r[b] = false;
  return r;
}

/// The fastest of the ways to cut the sequences of a step into micro-batches; a batch of prompts stays whole.
inline Found fastest(const Candidate& c, const PlanRequest& q, Estimator& e) {
  Found f;
  const Plan& p = c.settings.plan;
  const std::int64_t all = checked_mul(p.batch, p.gradient_accumulation);
  for (std::int64_t micro = 1; micro <= all; ++micro) {
    if (all % micro != 0 || (q.mode == Mode::inference && micro != p.batch)) continue;
    Settings s = c.settings;
    s.plan.batch = micro;
    if (q.mode == Mode::training) s.plan.gradient_accumulation = all / micro;
    const auto o = tried(s, q, e, f);
    if (!o) continue;
    const bool as_is = micro == p.batch;
    PlannedRun r = planned({std::move(s), c.changes}, *o, q, micro);
    if (as_is) f.as_is = r;
    if (o->fits && (!f.run || r.cost < f.run->cost)) f.run = std::move(r);
  }
  return f;
}

/// What changes nothing that is computed comes first, then what reaches furthest, then the least time, then the fewest
/// changes. Times within a percent of each other are one: no estimate is that sure.
inline auto rank(const PlannedRun& r, Goal goal) {
  const std::int64_t reach = goal == Goal::fastest ? 0 : r.reach;
  const auto percent = std::llround(std::log(std::max(r.cost, 1e-12)) * 100);
  return std::tuple(r.candidate.loses() != Loses::nothing, -reach, percent, r.candidate.changes.size(), r.cost);
}

/// a is in nothing worse than b.
inline bool covers(const PlannedRun& a, const PlannedRun& b, Goal goal) {
  return a.candidate.loses() <= b.candidate.loses() && (goal == Goal::fastest || a.reach >= b.reach) &&
         a.cost <= b.cost * 1.01 && a.candidate.changes.size() <= b.candidate.changes.size();
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

}  // namespace planner

/// The settings that fit, best first, out of every combination of the actions in plan_knobs with what was asked for;
/// what reaches furthest is tried with expandable segments, in batches of images of one size, and with its tower in
/// chunks, too. A combination that
/// another one beats at two sizes in memory, in its growth, in time and in the number of changes is not searched for
/// its largest size. The order of the answers does not depend on the number of threads. Throws Error where what was
/// asked for cannot be estimated at any size, or has no such goal.
inline PlanAnswer plan(const PlanRequest& q) {
  const Dial d = dial(q.asked, q.goal);
  std::vector<Candidate> all = candidates(q.asked, q.device, q.mode);
  std::vector<planner::Found> found;
  std::size_t before = 0;
  std::vector<bool> worth(all.size(), true);
  const auto each = [&](auto&& work, auto&& done) {
    parallel_for(
        all.size() - before, q.threads, [] { return Estimator{}; },
        [&](Estimator& e, std::size_t i) { work(e, before + i); }, done);
  };
  const auto search = [&] {
    found.resize(all.size());
    worth.resize(all.size(), true);
    each(
        [&](Estimator& e, std::size_t i) {
          if (!worth[i]) return;
          planner::Found f =
              q.goal == Goal::fastest ? planner::fastest(all[i], q, e) : planner::search(all[i], d, q, e);
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
    Estimator e;  // what cannot be run at all says why
    Settings smallest = q.asked;
    turn(smallest, q.goal, d.least);
    evaluate(smallest, q.device, q.mode, e);
    a.vision = action::vision_path(q.mode == Mode::training ? e.training_graph() : e.graph());
  }
  if (q.goal != Goal::fastest) {
    std::vector<planner::Probe> probes(all.size());
    found.resize(all.size());
    each([&](Estimator& e, std::size_t i) { probes[i] = planner::probe(all[i], d, q, e, found[i]); },
         [](std::size_t) {});
    worth = planner::worth_a_search(all, probes);
  }
  search();
  std::vector<PlannedRun> runs;
  for (const auto& f : found)
    if (f.run) runs.push_back(*f.run);
  Estimator e;
  for (const auto& r : planner::ranked(runs, q.goal, q.results)) {
    const Candidate c = planner::as_asked(r.candidate, d, q);
    if (auto more = with(c, "allocator-expandable", q.device, q.mode)) all.push_back(std::move(*more));
    if (auto more = with(c, "group-by-size", q.device, q.mode)) all.push_back(std::move(*more));
    if (auto more = planner::in_chunks(r, q, e)) all.push_back(planner::as_asked(std::move(*more), d, q));
  }
  if (before < all.size()) search();
  runs.clear();
  for (const auto& f : found) {
    a.estimates += f.estimates;
    if (f.run) runs.push_back(*f.run);
  }
  a.combinations = all.size();
  a.asked = found.front().run;
  a.front = planner::front(found);
  a.best = planner::ranked(std::move(runs), q.goal, q.results);
  return a;
}

}  // namespace vlmest::diagnose
