// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/parallel/network.hpp>

/// What measured collectives say of the links between GPUs.
namespace vlmest::fit {

/// Sizes that a curve is fitted to: powers of two. The others tell what it is worth.
inline bool fitted(const parallel::MeasuredCollective& m) {
  return std::has_single_bit(static_cast<std::uint64_t>(m.bytes.value()));
}

/// A mean over collectives of how far, in parts of what was measured, an estimate lies from it.
struct MeanError {
  int points = 0;
  double sum = 0;
  void add(Seconds estimated, Seconds measured) {
    ++points;
    sum += std::abs(estimated.value / measured.value - 1);
  }
  double mean() const { return points == 0 ? 0 : sum / points; }
};

/// Of few bytes, where latency decides, and of many.
struct NetworkError {
  MeanError small, large;
  void add(const parallel::MeasuredCollective& m, Seconds estimated) {
    (m.bytes < Bytes(1 << 20) ? small : large).add(estimated, m.time);
  }
};

/// One curve, what the network said of its collectives before, and what it says of those that it was not fitted to.
struct FittedCurve {
  parallel::CollectiveCurve curve;
  NetworkError before, held_out;
  Bandwidth most;  ///< traffic a second that the fastest of them had
};

/// A curve for each kind and number of ranks, in their order. Where a collective of more bytes took less, it counts
/// with what fewer took: a curve grows.
inline std::vector<FittedCurve> curves(std::span<const parallel::MeasuredCollective> all,
                                       const parallel::Network& before) {
  std::map<std::pair<parallel::CollectiveKind, int>, std::vector<parallel::MeasuredCollective>> by;
  for (const auto& m : all) by[{m.kind, m.ranks}].push_back(m);
  std::vector<FittedCurve> r;
  for (auto& [key, measured] : by) {
    std::sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    FittedCurve f{
        .curve = {.kind = key.first, .ranks = key.second, .points = {}}, .before = {}, .held_out = {}, .most = {}};
    for (const auto& m : measured) {
      const Bandwidth bus{static_cast<double>(m.bytes.value()) * parallel::traffic(m.kind, m.ranks) / m.time.value};
      f.most = std::max(f.most, bus);
      f.before.add(m, parallel::time(before, m.kind, m.bytes, m.ranks));
      auto& points = f.curve.points;
      if (!fitted(m) || (!points.empty() && points.back().bytes == m.bytes)) continue;
      points.push_back({m.bytes, points.empty() ? m.time : std::max(m.time, points.back().time)});
    }
    if (f.curve.points.empty()) continue;
    for (const auto& m : measured)
      if (!fitted(m)) f.held_out.add(m, parallel::time(f.curve, m.bytes));
    r.push_back(std::move(f));
  }
  return r;
}

}  // namespace vlmest::fit
