// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
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

/// One parameter as the optimiser sees it, and the values that it may take.
struct MatmulParameter {
  double MatmulEfficiency::*number = nullptr;
  Seconds MatmulEfficiency::*time = nullptr;
  double unit = 1;  ///< of a time, so that values are near 1
  double least = 0, most = 1e6;

  double get(const MatmulEfficiency& e) const { return number ? e.*number : (e.*time).value / unit; }
  void set(MatmulEfficiency& e, double v) const {
    v = std::clamp(v, least, most);
    if (number)
      e.*number = v;
    else
      e.*time = {v * unit};
  }
};

/// Those that few samples tell first.
inline std::vector<MatmulParameter> matmul_parameters(std::size_t samples, bool copied) {
  using E = MatmulEfficiency;
  std::vector<MatmulParameter> p{{.number = &E::rate, .most = 1}};
  if (samples < 16) return p;
  p.insert(p.end(), {{.number = &E::bandwidth, .most = 1},
                     {.time = &E::start, .unit = 1e-6},
                     {.time = &E::step, .unit = 1e-6},
                     {.time = &E::load, .unit = 1e-9},
                     {.time = &E::epilogue, .unit = 1e-12},
                     {.time = &E::split, .unit = 1e-6},
                     {.time = &E::reduction, .unit = 1e-12},
                     {.number = &E::tail, .most = 1},
                     {.number = &E::overlap, .least = 1, .most = 16}});
  if (!copied || samples < 1000) return p;
  for (double E::*f : {&E::sectors, &E::half_sectors, &E::sectors_written, &E::half_sectors_written})
    p.push_back({.number = f, .least = 1, .most = 4});
  for (double E::*f : {&E::half_sectors_rewritten, &E::shared_load}) p.push_back({.number = f, .most = 1});
  return p;
}

/// Every nth sample, so that at most `most` remain.
inline std::vector<MatmulSample> thinned(const std::vector<MatmulSample>& all, std::size_t most) {
  std::vector<MatmulSample> r;
  const std::size_t step = std::max<std::size_t>(1, (all.size() + most - 1) / most);
  for (std::size_t i = 0; i < all.size(); i += step) r.push_back(all[i]);
  return r;
}

/// The parameters near `first` that follow the samples best; `scale` as in least_squares().
inline MatmulEfficiency fit_parameters(const std::vector<MatmulSample>& samples, const Device& d,
                                       const MatmulEfficiency& first, double scale = 0.1) {
  const auto parameters = matmul_parameters(samples.size(), tiled::copies_rows(samples.front().op));
  const auto unpack = [&](const Eigen::VectorXd& p) {
    MatmulEfficiency e = first;
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].set(e, p[static_cast<Eigen::Index>(i)]);
    return e;
  };
  const auto n = static_cast<Eigen::Index>(samples.size());
  Eigen::VectorXd start(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) start[static_cast<Eigen::Index>(i)] = parameters[i].get(first);
  const auto residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const MatmulEfficiency e = unpack(p);
    for (Eigen::Index i = 0; i < out.size(); ++i) {
      const MatmulSample& s = samples[static_cast<std::size_t>(i % n)];
      out[i] = std::log(matmul_time(s.op, d, e).time.value / s.time.value);
    }
  };
  // The method wants at least as many residuals as parameters.
  return unpack(least_squares(start, std::max<Eigen::Index>(n, start.size()), residuals, 400, scale));
}

}  // namespace detail

/// Over which a correction lies: m with the batch, n and k.
inline std::array<double, 3> sizes(const Matmul& o) {
  return {static_cast<double>(o.batch) * static_cast<double>(o.m), static_cast<double>(o.n), static_cast<double>(o.k)};
}

/// What measured products are of modelled ones, over their sizes.
inline Correction<3> fit_correction(const std::vector<MatmulSample>& samples,
                                    const std::function<Seconds(const Matmul&)>& modelled) {
  std::vector<Ratio<3>> ratios;
  std::array<double, 3> low, high;
  low.fill(std::numeric_limits<double>::infinity());
  high.fill(0);
  for (const auto& s : samples) {
    const Ratio<3> r{sizes(s.op), std::log(s.time.value / modelled(s.op).value)};
    for (std::size_t a = 0; a < 3; ++a) {
      low[a] = std::min(low[a], std::log2(r.sizes[a]));
      high[a] = std::max(high[a], std::log2(r.sizes[a]));
    }
    ratios.push_back(r);
  }
  // Octaves from knot to knot, and how stiff the grid is: what held-out points of a sweep on an H200 liked best.
  const bool many = samples.size() >= 800;
  const double step = many ? 1 : 2, smoothness = many ? 0.1 : 0.03;
  return fit_correction<3>({knots(low[0], high[0], step), knots(low[1], high[1], step), knots(low[2], high[2], step)},
                           ratios, smoothness, 0.05);
}

/// The parameters of measured products of one kind of kernel, and, from 128 samples on, a correction where they still
/// differ. With fewer than 16 only the rate is fitted, and the rest stays as it was.
inline MatmulEfficiency fit_matmul(const std::vector<MatmulSample>& samples, const Device& d,
                                   MatmulEfficiency first = {}) {
  first.correction = {};
  if (samples.empty()) return first;
  MatmulEfficiency e = detail::fit_parameters(detail::thinned(samples, 3000), d, first);
  if (samples.size() < 128) return e;
  const auto correction = [&] {
    return fit_correction(samples, [&](const Matmul& o) { return matmul_time(o, d, e).time; });
  };
  // Parameters and correction in turns: what is smooth over sizes is the correction's, so that the parameters follow
  // the steps from tile to tile and from wave to wave.
  for (int again = 0; again < 2; ++again) {
    const Correction<3> smooth = correction();
    std::vector<MatmulSample> rest = samples;
    for (MatmulSample& s : rest) s.time = s.time * (1 / smooth(sizes(s.op)));
    e = detail::fit_parameters(detail::thinned(rest, 6000), d, e, 0.05);
  }
  e.correction = correction();
  return e;
}

}  // namespace vlmest::fit
