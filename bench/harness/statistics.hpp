// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <vlmest/unit/rate.hpp>

namespace vlmest::bench {

/// What repeated measurements of one thing say. All zero without samples, never NaN.
struct Statistics {
  double median = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation over the mean; 0 for a single sample
};

inline Statistics statistics(std::span<const double> samples) {
  Statistics r;
  if (samples.empty()) return r;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  r.median = sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  for (const double x : sorted) r.mean += x / static_cast<double>(sorted.size());
  if (sorted.size() < 2 || r.mean <= 0) return r;
  double squares = 0;
  for (const double x : sorted) squares += (x - r.mean) * (x - r.mean);
  r.deviation = std::sqrt(squares / static_cast<double>(sorted.size() - 1)) / r.mean;
  return r;
}

/// When sampling ends: the mean is known to `bound`, or `budget` is spent. Never before `least` samples, always at
/// `most`.
struct StopRule {
  int least = 5;
  int most = 40;
  double bound = 0.002;  ///< of the relative standard error of the mean, deviation / sqrt(n)
  Seconds budget{0.02};  ///< of device time for one point
};

inline bool enough(std::span<const double> samples, Seconds spent, const StopRule& rule) {
  const auto n = static_cast<int>(samples.size());
  if (n >= rule.most) return true;
  if (n < rule.least) return false;
  return spent >= rule.budget || statistics(samples).deviation / std::sqrt(static_cast<double>(n)) <= rule.bound;
}

/// A sample shorter than this shows the events' own resolution (half a microsecond) and overhead.
inline constexpr Seconds shortest_sample{200e-6};

/// How many calls make one sample: enough to last `shortest_sample`, at most `most`.
inline int calls_per_sample(Seconds one_call, int most) {
  if (one_call.value <= 0) return most;
  const double calls = std::ceil(shortest_sample.value / one_call.value);
  return static_cast<int>(std::clamp(calls, 1.0, static_cast<double>(most)));
}

/// How many sets of operands to go through in turn, so that a call finds nothing of its own in a cache of `cache`
/// bytes: the sets between two uses of one hold five times the cache.
inline std::int64_t rotating_sets(Bytes one_set, Bytes cache) {
  if (one_set <= Bytes{}) return 1;
  return (5 * cache.value() + one_set.value() - 1) / one_set.value() + 1;
}

}  // namespace vlmest::bench
