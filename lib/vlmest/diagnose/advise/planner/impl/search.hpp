// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/advise/planner/search.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace planner {

VLMEST_INLINE Probe probe(const Candidate& c, const SearchVariable& d, const PlanRequest& q, Estimator& e, Found& f) {
  Probe p{.at_small = d.asked, .at_large = d.asked > d.most / 2 ? d.most : d.asked * 2};
  Settings s = c.settings;
  turn(s, q.goal, p.at_small);
  p.small = tried(s, q, e, f);
  if (p.small) f.as_is = planned(Candidate{s, c.changes}, *p.small, q, d.asked);
  s = c.settings;
  turn(s, q.goal, p.at_large);
  p.large = tried(s, q, e, f);
  return p;
}

VLMEST_INLINE Found search(const Candidate& c, const SearchVariable& d, const PlanRequest& q, Estimator& e,
                           const Probe* probed) {
  Found f;
  std::optional<Outcome> best;
  std::int64_t at = 0;
  Settings s = c.settings;
  const auto outcome = [&](std::int64_t value) {
    if (probed && value == probed->at_small) return probed->small;
    if (probed && value == probed->at_large) return probed->large;
    return tried(s, q, e, f);
  };
  const auto limit = static_cast<double>(q.device.usable_bytes.value());
  const auto n = largest_that_fits(
      d.least, d.most, c.first > 0 ? c.first : d.asked, limit, d.window,
      [&](std::int64_t value) {
        s = c.settings;
        turn(s, q.goal, value);
        const auto o = outcome(value);
        if (!o) return Fit{};
        if (value == d.asked) f.as_is = planned({s, c.changes}, *o, q, value);
        if (o->fits && value > at) {
          best = o;
          at = value;
        }
        return Fit{o->fits, guiding(*o, q.goal)};
      },
      d.growth);
  if (!n) return f;
  s = c.settings;
  turn(s, q.goal, at);
  f.run = planned({std::move(s), c.changes}, *best, q, at);
  return f;
}

VLMEST_INLINE bool beats(const Candidate& a, const Probe& x, const Candidate& b, const Probe& y) {
  if (!x.small || !x.large || !y.small || !y.large) return false;
  const auto less = [](const Outcome& m, const Outcome& n) {
    return m.peak <= n.peak && m.per_sample().value <= n.per_sample().value * same_time;
  };
  return a.loses() <= b.loses() && a.changes.size() <= b.changes.size() && less(*x.small, *y.small) &&
         less(*x.large, *y.large) && x.large->peak - x.small->peak <= y.large->peak - y.small->peak;
}

VLMEST_INLINE Found fastest(const Candidate& c, const PlanRequest& q, Estimator& e) {
  Found f;
  const Plan& p = c.settings.plan;
  const std::int64_t all = checked_mul(p.batch, p.gradient_accumulation);
  for (std::int64_t micro = all; micro >= 1; --micro) {
    if (all % micro != 0 || (q.mode == Mode::inference && micro != p.batch)) continue;
    Settings s = c.settings;
    s.plan.batch = micro;
    if (q.mode == Mode::training) s.plan.gradient_accumulation = all / micro;
    const bool as_is = micro == p.batch;
    const auto faster = [&](const Outcome& o) { return !f.run || o.per_sample().value <= f.run->cost; };
    const auto o = tried(s, q, e, f, [&](const Outcome& timed) { return as_is || faster(timed); });
    if (!o) continue;
    PlannedRun r = planned({std::move(s), c.changes}, *o, q, micro);
    if (as_is) f.as_is = r;
    if (o->fits && faster(*o)) f.run = std::move(r);
  }
  return f;
}

}  // namespace planner
}  // namespace vlmest::diagnose
