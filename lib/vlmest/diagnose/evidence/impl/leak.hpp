// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/diagnose/evidence/leak.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace leak {

VLMEST_INLINE Points thin(const Points& p, std::size_t n) {
  if (p.size() <= n) return p;
  Points out;
  out.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> x, y;
    for (auto k = i * p.size() / n; k < (i + 1) * p.size() / n; ++k) {
      x.push_back(p[k].first);
      y.push_back(p[k].second);
    }
    out.emplace_back(median(std::move(x)), median(std::move(y)));
  }
  return out;
}

}  // namespace leak

VLMEST_INLINE Trend trend(const Points& all) {
  const auto p = leak::thin(all);
  Trend t;
  if (p.size() < 2) return t;
  std::vector<double> slopes;
  slopes.reserve(p.size() * (p.size() - 1) / 2);
  double s = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    for (auto k = i + 1; k < p.size(); ++k) {
      const double dx = p[k].first - p[i].first, dy = p[k].second - p[i].second;
      if (dx > 0) slopes.push_back(dy / dx);
      s += dy > 0 ? 1 : dy < 0 ? -1 : 0;
    }
  t.slope = median(std::move(slopes));
  std::vector<double> rest, away;
  for (const auto& [x, y] : p) rest.push_back(y - t.slope * x);
  t.level = median(rest);
  for (const double r : rest) away.push_back(std::abs(r - t.level));
  t.noise = 1.4826 * median(std::move(away));
  std::vector<double> y;
  for (const auto& q : p) y.push_back(q.second);
  std::sort(y.begin(), y.end());
  const auto n = static_cast<double>(p.size());
  double variance = n * (n - 1) * (2 * n + 5);
  for (std::size_t i = 0; i < y.size();) {
    auto k = i;
    while (k < y.size() && y[k] == y[i]) ++k;
    const auto ties = static_cast<double>(k - i);
    variance -= ties * (ties - 1) * (2 * ties + 5);
    i = k;
  }
  if (variance > 0) t.z = (s > 0 ? s - 1 : s < 0 ? s + 1 : 0) / std::sqrt(variance / 18);
  return t;
}

VLMEST_INLINE LeakReport find_leak(const Points& all, Bytes capacity) {
  Points points;
  for (const auto& p : all)
    if (std::isfinite(p.first) && std::isfinite(p.second)) points.push_back(p);
  LeakReport r;
  r.points = points.size();
  if (points.size() < 12) return r;
  const Points half(points.begin() + static_cast<std::ptrdiff_t>(points.size() / 2), points.end());
  const auto t = trend(half);
  r.noise = t.noise;
  r.last_step = half.back().first;
  const double span = half.back().first - half.front().first;
  const auto n = half.size();
  const double a = leak::median_of(half, 0, n / 3), b = leak::median_of(half, n / 3, 2 * n / 3),
               c = leak::median_of(half, 2 * n / 3, n);
  // Growth in rare jumps: most pairs are level, the thirds are not.
  const double slope = t.slope > 0 ? t.slope : span > 0 ? (c - a) / (span * 2 / 3) : 0;
  const auto bytes = [](double v) { return Bytes(static_cast<std::int64_t>(std::clamp(v, 0.0, 4e18))); };
  r.bytes_per_step = slope;
  r.grown = bytes(slope * span);
  r.level = bytes(t.slope > 0 ? t.at(r.last_step) : c);
  double above = 0;
  for (const auto& [x, y] : half) above = std::max(above, y - (t.slope > 0 ? t.at(x) : c));
  r.above = bytes(above);
  // The median of a third is known to 1.2533 standard deviations by the root of its points; 4 of these on both sides.
  const double doubt = 4 * 1.2533 * t.noise * std::sqrt(2.0 / (static_cast<double>(n) / 3));
  const bool beyond = slope > 0 && c - a > doubt && c - a > 0 && t.z > 2.6;
  r.growth = Growth::flat;
  if (!beyond) return r;
  // Curvature is no noise: what neighbours differ by, less the slope, holds hardly any of it.
  std::vector<double> jumps;
  for (std::size_t i = 1; i < n; ++i)
    jumps.push_back(std::abs(half[i].second - half[i - 1].second - slope * (half[i].first - half[i - 1].first)));
  const double jitter = 1.4826 * median(std::move(jumps)) / std::sqrt(2.0);
  const double unsure = 2 * 1.2533 * jitter * std::sqrt(2.0 / (static_cast<double>(n) / 3));
  r.growth = b > a && c > b && c - b >= 0.5 * (b - a) - unsure ? Growth::growing : Growth::settling;
  if (r.growth != Growth::growing) return r;
  if (capacity > Bytes()) {
    const double left = static_cast<double>(capacity.value()) - static_cast<double>(r.level.value()) - above;
    r.end_step = r.last_step + std::max(0.0, left / slope);
  }
  return r;
}

}  // namespace vlmest::diagnose
