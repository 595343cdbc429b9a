// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <bench/fit/least_squares.hpp>

#include <vlmest/analysis/fft_time.hpp>

namespace vlmest::fit {

/// A measured transform.
struct FftSample {
  Fft op;
  Operands operands = Operands::from_dram;
  Seconds time;
};

/// The parameters of measured transforms, all together: a transform has passes of several kinds. The latency of DRAM
/// and the turning of its bus are those of `d`'s other kernels that move bytes.
inline FftEfficiency fit_fft(const std::vector<FftSample>& samples, Device d) {
  FftEfficiency& e = d.efficiency.fft;
  if (samples.size() < 40) return e;
  const std::vector<MemoryEfficiency*> kinds{&e.rows, &e.large, &e.columns, &e.real, &e.repack, &e.bluestein};
  constexpr Eigen::Index each = 4;
  const auto count = each * static_cast<Eigen::Index>(kinds.size());
  const auto set = [&](const Eigen::VectorXd& p) {
    Eigen::Index i = 0;
    for (MemoryEfficiency* k : kinds) {
      k->start = {p[i] * 1e-6};
      k->bandwidth = std::min(1.0, p[i + 1]);
      k->cached = std::clamp(p[i + 2], 1.0, 2.0);
      k->element = {p[i + 3] * 1e-12};
      i += each;
    }
    e.matrix = {p[count] * 1e-12};
    e.chirp = {p[count + 1] * 1e-12};
  };
  Eigen::VectorXd first(count + 2);
  Eigen::Index at = 0;
  for (MemoryEfficiency* k : kinds) {
    k->latency = d.efficiency.memory.fused.latency;
    k->mixed = d.efficiency.memory.fused.mixed;
    first.segment(at, each) << k->start.us(), k->bandwidth, k->cached, std::max(0.1, k->element.value * 1e12);
    at += each;
  }
  first[count] = e.matrix.value * 1e12;
  first[count + 1] = e.chirp.value * 1e12;
  const auto n = static_cast<Eigen::Index>(samples.size());
  set(least_squares(first, n, [&](const Eigen::VectorXd& q, Eigen::VectorXd& out) {
    set(q);
    for (Eigen::Index i = 0; i < n; ++i) {
      const FftSample& s = samples[static_cast<std::size_t>(i)];
      out[i] = std::log(transform_time(s.op, d, s.operands).time.value / s.time.value);
    }
  }, 2000));
  return e;
}

}  // namespace vlmest::fit
