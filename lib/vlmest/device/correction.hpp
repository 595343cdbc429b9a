// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace vlmest {

/// A factor over N sizes, piecewise linear in their logarithms: what measured times are of modelled ones, where a
/// model's form does not follow them. Beyond the outermost knots it stays what it is there. Empty: 1.
template <std::size_t N>
struct Correction {
  std::array<std::vector<double>, N> knots;  ///< log2 of sizes, ascending, at least two an axis
  std::vector<double> log_factor;            ///< natural logarithms, the last axis fastest

  bool empty() const { return log_factor.empty(); }

  std::size_t size() const {
    std::size_t n = 1;
    for (const auto& k : knots) n *= k.size();
    return n;
  }

  /// A knot of one axis and how much it weighs; the next knot weighs the rest.
  struct Place {
    std::size_t knot;
    double next;
  };
  Place place(std::size_t axis, double log2_size) const {
    const auto& k = knots[axis];
    const double x = std::clamp(log2_size, k.front(), k.back());
    const auto above = std::upper_bound(k.begin() + 1, k.end() - 1, x);
    const auto i = static_cast<std::size_t>(above - k.begin()) - 1;
    return {i, (x - k[i]) / (k[i + 1] - k[i])};
  }

  /// Calls f(index, weight) for the corners of the cell around these sizes; the weights add up to 1.
  template <class F>
  void corners(const std::array<double, N>& sizes, F f) const {
    std::array<Place, N> at{};
    for (std::size_t a = 0; a < N; ++a) at[a] = place(a, std::log2(sizes[a]));
    for (std::size_t corner = 0; corner < (std::size_t{1} << N); ++corner) {
      std::size_t index = 0;
      double weight = 1;
      for (std::size_t a = 0; a < N; ++a) {
        const bool next = (corner >> a & 1) != 0;
        index = index * knots[a].size() + at[a].knot + (next ? 1 : 0);
        weight *= next ? at[a].next : 1 - at[a].next;
      }
      if (weight > 0) f(index, weight);
    }
  }

  double operator()(const std::array<double, N>& sizes) const {
    if (empty()) return 1;
    double sum = 0;
    corners(sizes, [&](std::size_t i, double w) { sum += w * log_factor[i]; });
    return std::exp(sum);
  }
};

}  // namespace vlmest
