// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/unit/units.hpp>

/// Whether memory grows from step to step for good. Robust statistics: single peaks, a noisy batch size and the warm-up
/// do not decide.
namespace vlmest::diagnose {

using Points = std::vector<std::pair<double, double>>;  ///< (step, bytes), steps growing

inline double median(std::vector<double> v) {
  if (v.empty()) return 0;
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

/// A straight line y = level + slope * x.
struct Trend {
  double slope = 0, level = 0;
  double noise = 0;  ///< standard deviation of the residuals, as 1.4826 times their median absolute value
  double z = 0;      ///< of Mann-Kendall's test: how far the number of rising pairs is from chance
  double at(double x) const { return level + slope * x; }
};

namespace leak {

inline constexpr std::size_t most_points = 400;  ///< pairs are counted: 80,000 of them

/// At most n points: each the median of as many neighbours.
Points thin(const Points& p, std::size_t n = most_points);

inline double median_of(const Points& p, std::size_t begin, std::size_t end) {
  std::vector<double> y;
  for (auto i = begin; i < end; ++i) y.push_back(p[i].second);
  return median(std::move(y));
}

}  // namespace leak

/// Theil-Sen: the slope is the median of those of all pairs (Sen, JASA 63, 1968), the level the median of what remains.
/// z is Mann-Kendall's with ties taken into account (Mann, Econometrica 13, 1945; Kendall, Rank Correlation Methods).
Trend trend(const Points& all);

enum class Growth : std::uint8_t {
  too_few,   ///< less than 12 points: nothing can be said
  flat,      ///< no growth that goes on, or none beyond the noise
  settling,  ///< grows, but slower and slower: caches that fill
  growing    ///< grows until the end
};
inline constexpr std::array<std::string_view, 4> growths{"too_few", "flat", "settling", "growing"};
constexpr std::string_view name(Growth g) { return growths[static_cast<std::size_t>(g)]; }

struct LeakReport {
  Growth growth = Growth::too_few;
  std::size_t points = 0;
  double bytes_per_step = 0;  ///< over the last half
  double noise = 0;           ///< of the last half, in bytes
  Bytes grown;                ///< over the last half
  double last_step = 0;
  Bytes level;                     ///< of the trend at the last step
  Bytes above;                     ///< by how much the highest points exceed the trend
  std::optional<double> end_step;  ///< at which the highest points reach the capacity
  bool is_leak() const { return growth == Growth::growing; }
};

/// Growth must show in the last half alone, beyond the noise, from each of its thirds to the next, and at the end
/// with at least half the pace of its beginning. `capacity` 0: not known. Points with NaN are passed over.
LeakReport find_leak(const Points& all, Bytes capacity = {});

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/impl/leak.hpp>
#endif
