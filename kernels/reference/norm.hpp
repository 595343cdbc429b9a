// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/reference/rows.hpp>

#include <vlmest/op/norm.hpp>

namespace vlmest::kernels::reference {

struct NormResult {
  std::vector<double> y;     ///< [rows, width]
  std::vector<double> mean;  ///< [rows]; zeros for an RMS norm
  std::vector<double> rstd;  ///< [rows]
};

/// Layer norm (Ba, Kiros, Hinton, arXiv:1607.06450, equation 4) with the variance divided by the width, or RMS norm
/// (Zhang, Sennrich, arXiv:1910.07467, equation 4), with epsilon under the root. weight and bias are read where the op
/// has them.
inline NormResult norm(const Norm& op, std::span<const double> x, std::span<const double> weight,
                       std::span<const double> bias, double epsilon = 1e-5) {
  const auto in = rows_of(x, op.rows, op.width, "x");
  expect_size(weight, op.parameters >= 1 ? op.width : 0, "weight");
  expect_size(bias, op.parameters == 2 ? op.width : 0, "bias");
  NormResult r;
  auto y = rows_of(r.y, op.rows, op.width);
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(op.rows);
  if (op.kind == Norm::Kind::layer_norm) mean = in.rowwise().mean();
  y = in.colwise() - mean;
  const Eigen::VectorXd rstd = (y.rowwise().squaredNorm().array() / static_cast<double>(op.width) + epsilon).rsqrt();
  y.array().colwise() *= rstd.array();
  if (op.parameters >= 1) y.array().rowwise() *= Eigen::Map<const Eigen::RowVectorXd>(weight.data(), op.width).array();
  if (op.parameters == 2) y.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias.data(), op.width);
  r.mean.assign(mean.begin(), mean.end());
  r.rstd.assign(rstd.begin(), rstd.end());
  return r;
}

}  // namespace vlmest::kernels::reference
