// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include <bench/fit/fit_matmul.hpp>

namespace vlmest::fit {

/// The parameters of measured products that few_rows::time() models, and, from 128 samples on, a correction.
inline FewRowsEfficiency fit_few_rows(const std::vector<MatmulSample>& samples, const Device& d,
                                      FewRowsEfficiency e = {}) {
  e.correction = {};
  if (samples.size() < 40) return e;
  using E = FewRowsEfficiency;
  constexpr std::array times{&E::start, &E::chain, &E::dot,  &E::element, &E::blocks, &E::split,
                             &E::two,   &E::three, &E::four, &E::row,     &E::column, &E::cell};
  const std::array<double, times.size()> first = [&] {
    std::array<double, times.size()> r{};
    for (std::size_t i = 0; i < times.size(); ++i) r[i] = (e.*times[i]).value;
    return r;
  }();
  // In parts of what they were, so that all are near 1.
  const auto unpack = [&](const Eigen::VectorXd& p) {
    E r = e;
    for (std::size_t i = 0; i < times.size(); ++i) (r.*times[i]).value = first[i] * p[static_cast<Eigen::Index>(i)];
    r.bandwidth = std::min(1.0, e.bandwidth * p[static_cast<Eigen::Index>(times.size())]);
    return r;
  };
  const auto n = static_cast<Eigen::Index>(samples.size());
  e = unpack(least_squares(Eigen::VectorXd::Ones(static_cast<Eigen::Index>(times.size()) + 1), n,
                           [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
                             const E tried = unpack(p);
                             for (Eigen::Index i = 0; i < n; ++i) {
                               const MatmulSample& s = samples[static_cast<std::size_t>(i)];
                               out[i] = std::log(few_rows::time(s.op, d, tried).time.value / s.time.value);
                             }
                           }));
  if (samples.size() >= 128)
    e.correction = fit_correction(samples, [&](const Matmul& o) { return few_rows::time(o, d, e).time; });
  return e;
}

}  // namespace vlmest::fit
