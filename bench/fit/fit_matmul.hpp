// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <bench/fit/fit_correction.hpp>
#include <bench/fit/least_squares.hpp>

#include <vlmest/analysis/matmul_time.hpp>

namespace vlmest::fit {

struct MatmulSample {
  Matmul op;
  Seconds time;
};

namespace detail {

/// The parameters that every product shares, as the optimiser sees them, and back.
inline Eigen::VectorXd pack(const MatmulEfficiency& e) {
  Eigen::VectorXd p(8);
  p << e.rate, e.bandwidth, e.start.us(), e.fill.us(), e.step.us(), e.epilogue.us(), e.split.us(), e.overlap;
  return p;
}
inline MatmulEfficiency unpack(const Eigen::VectorXd& p, MatmulEfficiency e) {
  e.rate = p[0];
  e.bandwidth = std::min(1.0, p[1]);
  e.start = {p[2] * 1e-6};
  e.fill = {p[3] * 1e-6};
  e.step = {p[4] * 1e-6};
  e.epilogue = {p[5] * 1e-6};
  e.split = {p[6] * 1e-6};
  e.overlap = std::clamp(p[7], 1.0, 16.0);
  return e;
}

/// Every nth sample, so that at most `most` remain.
inline std::vector<MatmulSample> thinned(const std::vector<MatmulSample>& all, std::size_t most) {
  std::vector<MatmulSample> r;
  const std::size_t step = std::max<std::size_t>(1, (all.size() + most - 1) / most);
  for (std::size_t i = 0; i < all.size(); i += step) r.push_back(all[i]);
  return r;
}

}  // namespace detail

/// The parameters of measured products of one kind of kernel, and, from 256 samples on, a correction where they still
/// differ. With fewer than 16 only the rate is fitted, and the rest stays as it was.
inline MatmulEfficiency fit_matmul(const std::vector<MatmulSample>& samples, const Device& d,
                                   MatmulEfficiency first = {}) {
  first.correction = {};
  if (samples.empty()) return first;
  const std::vector<MatmulSample> some = detail::thinned(samples, 3000);
  const bool few = some.size() < 16;
  const auto unpack = [&](const Eigen::VectorXd& p) {
    if (!few) return detail::unpack(p, first);
    MatmulEfficiency e = first;
    e.rate = p[0];
    return e;
  };
  const auto n = static_cast<Eigen::Index>(some.size());
  const Eigen::VectorXd start = few ? Eigen::VectorXd::Constant(1, first.rate) : detail::pack(first);
  const auto residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const MatmulEfficiency e = unpack(p);
    for (Eigen::Index i = 0; i < out.size(); ++i) {
      const MatmulSample& s = some[static_cast<std::size_t>(i % n)];
      out[i] = std::log(matmul_time(s.op, d, e).time.value / s.time.value);
    }
  };
  // The method wants at least as many residuals as parameters.
  MatmulEfficiency e = unpack(least_squares(start, std::max<Eigen::Index>(n, start.size()), residuals));
  if (samples.size() < 256) return e;

  std::vector<Ratio<3>> ratios;
  std::array<double, 3> low, high;
  low.fill(std::numeric_limits<double>::infinity());
  high.fill(0);
  for (const auto& s : samples) {
    const Matmul& o = s.op;
    const Ratio<3> r{
        {static_cast<double>(o.batch) * static_cast<double>(o.m), static_cast<double>(o.n), static_cast<double>(o.k)},
        std::log(s.time.value / matmul_time(o, d, e).time.value)};
    for (std::size_t a = 0; a < 3; ++a) {
      low[a] = std::min(low[a], std::log2(r.sizes[a]));
      high[a] = std::max(high[a], std::log2(r.sizes[a]));
    }
    ratios.push_back(r);
  }
  const double step = samples.size() >= 4000 ? 1 : 2;
  e.correction = fit_correction<3>(
      {knots(low[0], high[0], step), knots(low[1], high[1], step), knots(low[2], high[2], step)}, ratios, 0.1, 0.3);
  return e;
}

}  // namespace vlmest::fit
