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
  const std::vector<FftKernel*> kernels{&e.rows, &e.columns, &e.row_parts, &e.column_parts, &e.real};
  std::vector<MemoryEfficiency*> kinds(kernels.begin(), kernels.end());
  kinds.insert(kinds.end(), {&e.grid, &e.convolution, &e.repack, &e.copy});
  for (MemoryEfficiency* k : kinds) {
    k->latency = d.efficiency.memory.fused.latency;
    k->mixed = d.efficiency.memory.fused.mixed;
  }
  // Visits every parameter with its unit, in the same order each time.
  const auto each = [&](const auto& visit) {
    for (MemoryEfficiency* k : kinds) {
      visit(k->start.value, 1e-6);
      visit(k->bandwidth, 1);
      visit(k->cached, 1);
    }
    for (MemoryEfficiency* k : {&e.columns, &e.real}) visit(k->element.value, 1e-12);
    visit(e.convolution.element.value, 1e-12);
    for (FftKernel* k : {&e.rows, &e.columns, &e.real}) visit(k->mixed_radix.value, 1e-12);
    visit(e.columns.misaligned.value, 1e-12);
    for (FftKernel* k : kernels) {
      visit(k->butterfly.value, 1e-12);
      visit(k->matrix.value, 1e-12);
    }
    for (FftKernel* k : {&e.rows, &e.columns}) visit(k->chirp.value, 1e-12);
    visit(e.block.value, 1e-12);
  };
  const auto set = [&](const Eigen::VectorXd& p) {
    Eigen::Index i = 0;
    each([&](double& value, double unit) { value = p[i++] * unit; });
    for (MemoryEfficiency* k : kinds) {
      k->bandwidth = std::min(1.0, k->bandwidth);
      k->cached = std::clamp(k->cached, 1.0, 2.0);
    }
  };
  std::vector<double> values;
  for (MemoryEfficiency* k : kinds) {  // off the limits, where a fit would see no slope
    k->bandwidth = std::min(0.95, k->bandwidth);
    k->cached = std::clamp(k->cached, 1.1, 1.9);
  }
  each([&](double& value, double unit) { values.push_back(std::max(0.1, value / unit)); });
  const Eigen::VectorXd first = Eigen::Map<Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
  std::vector<std::vector<cufft::Pass>> passes;
  std::vector<double> weights;
  // What a length's own kernels do differently is in all batches of it: each length counts as one sample.
  for (const FftSample& s : samples) {
    passes.push_back(cufft::passes(s.op));
    const auto same = std::count_if(samples.begin(), samples.end(), [&](const FftSample& other) {
      return other.op.kind == s.op.kind && other.op.n == s.op.n;
    });
    weights.push_back(1 / std::sqrt(static_cast<double>(same)));
  }
  const auto n = static_cast<Eigen::Index>(samples.size());
  set(least_squares(
      first, n,
      [&](const Eigen::VectorXd& q, Eigen::VectorXd& out) {
        set(q);
        for (std::size_t i = 0; i < samples.size(); ++i) {
          const FftSample& s = samples[i];
          out[static_cast<Eigen::Index>(i)] =
              weights[i] * std::log(transform_time(s.op, passes[i], d, s.operands).time.value / s.time.value);
        }
      },
      2000));
  return e;
}

}  // namespace vlmest::fit
