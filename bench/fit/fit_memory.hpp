// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <vector>

#include <bench/fit/least_squares.hpp>

#include <vlmest/analysis/op_time.hpp>

namespace vlmest::fit {

/// A measured op of one way of access.
struct MemorySample {
  Op op;
  Operands operands = Operands::from_cache;
  Seconds time;
};

/// The parameters at `which` of measured kernels that move bytes; `d` has all others. What only operands in DRAM tell
/// stays as it is where none of the samples had them there; how long DRAM takes to turn around is told by the fused
/// kernels alone, since only they read and write in several proportions. Of those shorter than 10 µs, a relative error
/// counts less the shorter they are: a model runs thousands of them, and what matters is their sum.
template <std::derived_from<MemoryEfficiency> E>
E fit_memory(const std::vector<MemorySample>& samples, Device d, E MemoryEfficiencies::*which) {
  E& e = d.efficiency.memory.*which;
  if (samples.size() < 8) return e;
  const auto cold = [](const MemorySample& s) { return s.operands == Operands::from_dram; };
  const bool from_dram = std::any_of(samples.begin(), samples.end(), cold);
  const bool turns = static_cast<const void*>(&e) == &d.efficiency.memory.fused;
  if (from_dram) e.mixed = d.efficiency.memory.fused.mixed;
  const auto set = [&e, from_dram, turns](const Eigen::VectorXd& p) {
    e.start = {p[0] * 1e-6};
    e.bandwidth = std::min(1.0, p[1]);
    e.cached = std::clamp(p[2], 1.0, 2.0);
    e.element = {p[3] * 1e-12};
    if (from_dram) e.latency = {p[4] * 1e-6};
    if (from_dram && turns) e.mixed = p[5];
    if constexpr (std::derived_from<E, RowEfficiency>) e.vector = {p[6] * 1e-6};
  };
  Eigen::VectorXd first = Eigen::VectorXd::Ones(7);
  // Off the limits, where a fit would see no slope.
  first.head(6) << e.start.us(), std::min(0.95, e.bandwidth), std::clamp(e.cached, 1.1, 1.9),
      std::max(0.1, e.element.value * 1e12), std::max(0.1, e.latency.us()), std::max(0.05, e.mixed);
  if constexpr (std::derived_from<E, RowEfficiency>) first[6] = std::max(0.01, e.vector.us());
  const auto n = static_cast<Eigen::Index>(samples.size());
  set(least_squares(first, n, [&](const Eigen::VectorXd& q, Eigen::VectorXd& out) {
    set(q);
    for (Eigen::Index i = 0; i < n; ++i) {
      const MemorySample& s = samples[static_cast<std::size_t>(i)];
      const double weight = std::clamp(s.time.us() / 10, 0.4, 1.0);
      out[i] = weight * std::log(op_time(s.op, d, s.operands).time.value / s.time.value);
    }
  }));
  return e;
}

}  // namespace vlmest::fit
