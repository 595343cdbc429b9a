// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <vlmest/diagnose/advise/planner/candidates.hpp>
#include <vlmest/diagnose/advise/planner/goal.hpp>
#include <vlmest/diagnose/advise/planner/largest_that_fits.hpp>
#include <vlmest/nn/sequence_layout.hpp>

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
  std::int64_t reach = 0;  ///< of the goal's variable
  double cost = 0;         ///< seconds of a sequence, or of a token where plans differ in their sequences' length
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
  if (q.goal == Goal::max_seq || q.goal == Goal::max_pixels || q.goal == Goal::max_frames)
    cost /= static_cast<double>(make_sequences(c.settings.vlm, c.settings.plan).seq);
  return {std::move(c), o, reach, cost};
}

template <class Wanted>
std::optional<Outcome> tried(const Settings& s, const PlanRequest& q, Estimator& e, Found& f, Wanted&& wanted) {
  ++f.estimates;
  try {
    return evaluate(s, q.device, q.mode, e, wanted);
  } catch (const Error&) {
    return std::nullopt;  // what cannot be estimated does not fit
  }
}
inline std::optional<Outcome> tried(const Settings& s, const PlanRequest& q, Estimator& e, Found& f) {
  return tried(s, q, e, f, [](const Outcome&) { return true; });
}

/// What a combination takes at the size that was asked for and at a larger one.
struct Probe {
  std::optional<Outcome> small, large;
  std::int64_t at_small = 0, at_large = 0;
};
Probe probe(const Candidate& c, const SearchVariable& d, const PlanRequest& q, Estimator& e, Found& f);

/// What the search's guesses follow: each phase's peak. Of sequences' length the largest alone: a longer one makes no
/// larger graph, so that tries far beyond the limit cost no more, and next to it, where fragmentation decides and one
/// token more may fit again, every answer keeps the place that it always had.
inline std::array<double, 3> guiding(const Outcome& o, Goal goal) {
  std::array<double, 3> r{static_cast<double>(o.peak.value())};
  if (goal != Goal::max_seq)
    std::transform(o.peaks.begin(), o.peaks.end(), r.begin(), [](Bytes b) { return static_cast<double>(b.value()); });
  return r;
}

/// The size that reaches furthest. What the probe has tried, where there was one, is not tried again.
Found search(const Candidate& c, const SearchVariable& d, const PlanRequest& q, Estimator& e, const Probe* probed);

/// a needs no more than b at both sizes, grows no faster, and changes no more: b reaches no further.
bool beats(const Candidate& a, const Probe& x, const Candidate& b, const Probe& y);
/// Which combinations are worth a search: those that none beats, the first of equals.
inline std::vector<bool> worth_a_search(const std::vector<Candidate>& all, const std::vector<Probe>& probes) {
  std::vector<bool> r(all.size(), true);
  for (std::size_t b = 1; b < all.size(); ++b)
    for (std::size_t a = 0; a < all.size() && r[b]; ++a)
      if (a != b && r[a] && beats(all[a], probes[a], all[b], probes[b])) r[b] = false;
  return r;
}

/// The fastest of the ways to cut the sequences of a step into micro-batches, of equals the smallest; a batch of
/// prompts stays whole. Large ones come first, which are fastest as a rule: of what is slower than one that fits,
/// nobody asks for the memory.
Found fastest(const Candidate& c, const PlanRequest& q, Estimator& e);

}  // namespace planner
}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/advise/planner/impl/search.hpp>
#endif
