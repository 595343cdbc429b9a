// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <bench/fit/least_squares.hpp>

#include <vlmest/analysis/memory_time.hpp>

namespace vlmest::fit {

/// A measured op of one way of access: the bytes that it moves and the elements that it walks.
struct MemorySample {
  Bytes moved;
  Elements walked;
  int kernels = 1;
  Seconds time;
};

/// The parameters of measured kernels that move bytes. Of those shorter than 10 µs, a relative error counts less the
/// shorter they are: a model runs thousands of them, and what matters is their sum.
inline MemoryEfficiency fit_memory(const std::vector<MemorySample>& samples, const Device& d,
                                   const MemoryEfficiency& first = {}) {
  if (samples.size() < 8) return first;
  const auto unpack = [](const Eigen::VectorXd& p) {
    return MemoryEfficiency{{p[0] * 1e-6}, std::min(1.0, p[1]), std::clamp(p[3], 1.0, 2.0), {p[2] * 1e-12}};
  };
  Eigen::VectorXd p(4);
  p << first.start.us(), first.bandwidth, std::max(0.1, first.element.value * 1e12), first.cached;
  const auto n = static_cast<Eigen::Index>(samples.size());
  return unpack(least_squares(p, n, [&](const Eigen::VectorXd& q, Eigen::VectorXd& out) {
    const MemoryEfficiency e = unpack(q);
    for (Eigen::Index i = 0; i < n; ++i) {
      const MemorySample& s = samples[static_cast<std::size_t>(i)];
      const double weight = std::clamp(s.time.us() / 10, 0.4, 1.0);
      out[i] = weight * std::log(memory_time(s.moved, s.walked, s.kernels, d, e).time.value / s.time.value);
    }
  }));
}

}  // namespace vlmest::fit
