// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include <Eigen/Dense>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

namespace vlmest::fit {

/// Logarithms of predicted over measured for given parameters, one a sample.
using Residuals = std::function<void(const Eigen::VectorXd& parameters, Eigen::VectorXd& out)>;

namespace detail {

/// What Eigen's Levenberg-Marquardt asks of a function.
struct Problem {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const Residuals* residuals;
  Eigen::Index parameters, samples;
  double scale;

  int inputs() const { return static_cast<int>(parameters); }
  int values() const { return static_cast<int>(samples); }
  /// Residuals beyond `scale` count by their size, not by its square (the soft L1 loss): a few shapes for which a
  /// library chose a slow kernel shall not bend the rest.
  int operator()(const Eigen::VectorXd& logs, Eigen::VectorXd& out) const {
    (*residuals)(logs.array().exp().matrix(), out);
    for (double& r : out) {
      const double x = r / scale;
      r = std::copysign(scale * std::sqrt(2 * (std::sqrt(1 + x * x) - 1)), r);
    }
    return 0;
  }
};

}  // namespace detail

/// The positive parameters near `first` for which the residuals are least: Levenberg-Marquardt over their logarithms
/// (Moré, The Levenberg-Marquardt algorithm, 1978; Eigen's port of MINPACK) with a soft L1 loss.
inline Eigen::VectorXd least_squares(const Eigen::VectorXd& first, Eigen::Index samples, const Residuals& residuals,
                                     int evaluations = 400, double scale = 0.1) {
  const detail::Problem problem{&residuals, first.size(), samples, scale};
  Eigen::NumericalDiff<detail::Problem> differentiated(problem, 1e-8);
  Eigen::LevenbergMarquardt<Eigen::NumericalDiff<detail::Problem>> method(differentiated);
  method.parameters.maxfev = evaluations;
  // A parameter that an earlier fit found to be nothing has no logarithm; it begins as next to nothing.
  Eigen::VectorXd logs = first.array().max(1e-4).log().matrix();
  method.minimize(logs);
  return logs.array().exp().matrix();
}

}  // namespace vlmest::fit
