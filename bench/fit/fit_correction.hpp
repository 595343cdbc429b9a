// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <Eigen/Dense>

#include <vlmest/device/correction.hpp>

namespace vlmest::fit {

/// One measured point of a correction: its sizes, and the logarithm of measured over modelled.
template <std::size_t N>
struct Ratio {
  std::array<double, N> sizes;
  double log_ratio;
};

/// The correction with these knots that follows the ratios by least squares. Neighbouring values are held together: the
/// squares of second differences along every axis count `smoothness` times, those of the values themselves `shrink`
/// times, so that cells without points follow their neighbours and then fade.
template <std::size_t N>
Correction<N> fit_correction(std::array<std::vector<double>, N> knots, const std::vector<Ratio<N>>& ratios,
                             double smoothness, double shrink) {
  Correction<N> c{std::move(knots), {}};
  const auto size = static_cast<Eigen::Index>(c.size());
  Eigen::MatrixXd a = Eigen::MatrixXd::Identity(size, size) * shrink;
  Eigen::VectorXd b = Eigen::VectorXd::Zero(size);
  std::vector<std::pair<Eigen::Index, double>> row;
  const auto add = [&](double weight, double value) {
    for (const auto& [i, x] : row) {
      b[i] += weight * x * value;
      for (const auto& [j, y] : row) a(i, j) += weight * x * y;
    }
  };
  for (const auto& r : ratios) {
    row.clear();
    c.corners(r.sizes, [&](std::size_t i, double w) { row.push_back({static_cast<Eigen::Index>(i), w}); });
    add(1, r.log_ratio);
  }
  Eigen::Index stride = 1;
  for (std::size_t axis = N; axis-- > 0;) {
    const auto n = static_cast<Eigen::Index>(c.knots[axis].size());
    for (Eigen::Index i = 0; i < size; ++i) {
      const Eigen::Index at = i / stride % n;
      if (at == 0 || at == n - 1) continue;
      row = {{i - stride, 1}, {i, -2}, {i + stride, 1}};
      add(smoothness, 0);
    }
    stride *= n;
  }
  const Eigen::VectorXd x = a.ldlt().solve(b);
  c.log_factor.assign(x.begin(), x.end());
  return c;
}

/// Knots from the logarithm of the smallest size to that of the largest, `step` apart.
inline std::vector<double> knots(double from, double to, double step) {
  std::vector<double> k{from};
  while (k.back() + 1.5 * step < to) k.push_back(k.back() + step);
  k.push_back(to);
  return k;
}

}  // namespace vlmest::fit
