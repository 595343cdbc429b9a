// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <utility>
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
/// times, so that cells without points follow their neighbours and then fade. A few points far off (a library's poor
/// choice, a clock that fell) do not bend the rest: repeatedly, what is off by more than `scale` counts the less the
/// further it is (Huber, Robust Estimation of a Location Parameter, 1964, with a smooth weight).
template <std::size_t N>
Correction<N> fit_correction(std::array<std::vector<double>, N> knots, const std::vector<Ratio<N>>& ratios,
                             double smoothness, double shrink, double scale = 0.05) {
  Correction<N> c{std::move(knots), {}};
  const auto size = static_cast<Eigen::Index>(c.size());
  using Row = std::vector<std::pair<Eigen::Index, double>>;
  const auto add = [](Eigen::MatrixXd& a, const Row& row, double weight) {
    for (const auto& [i, x] : row)
      for (const auto& [j, y] : row) a(i, j) += weight * x * y;
  };
  Eigen::MatrixXd held = Eigen::MatrixXd::Identity(size, size) * shrink;
  Eigen::Index stride = 1;
  for (std::size_t axis = N; axis-- > 0;) {
    const auto n = static_cast<Eigen::Index>(c.knots[axis].size());
    for (Eigen::Index i = 0; i < size; ++i) {
      const Eigen::Index at = i / stride % n;
      if (at == 0 || at == n - 1) continue;
      add(held, {{i - stride, 1}, {i, -2}, {i + stride, 1}}, smoothness);
    }
    stride *= n;
  }
  std::vector<Row> rows(ratios.size());
  for (std::size_t r = 0; r < ratios.size(); ++r)
    c.corners(ratios[r].sizes, [&](std::size_t i, double w) { rows[r].emplace_back(static_cast<Eigen::Index>(i), w); });
  Eigen::VectorXd x = Eigen::VectorXd::Zero(size);
  for (int repeat = 0; repeat < 4; ++repeat) {
    Eigen::MatrixXd a = held;
    Eigen::VectorXd b = Eigen::VectorXd::Zero(size);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double fitted = 0;
      for (const auto& [i, w] : rows[r]) fitted += w * x[i];
      const double off = (ratios[r].log_ratio - fitted) / scale,
                   weight = repeat == 0 ? 1 : 1 / std::sqrt(1 + off * off);
      for (const auto& [i, w] : rows[r]) b[i] += weight * w * ratios[r].log_ratio;
      add(a, rows[r], weight);
    }
    x = a.ldlt().solve(b);
  }
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
