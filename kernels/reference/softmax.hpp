// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kernels/reference/rows.hpp>

#include <vlmest/op/softmax.hpp>

namespace vlmest::kernels::reference {

/// exp(x - max) / sum exp(x - max) over the last dimension. A row that is -inf throughout becomes NaN, or 0 where the
/// op is safe.
inline std::vector<double> softmax(const Softmax& op, std::span<const double> x) {
  const auto in = rows_of(x, op.rows, op.width, "x");
  std::vector<double> r;
  auto y = rows_of(r, op.rows, op.width);
  const Eigen::VectorXd largest = in.rowwise().maxCoeff();
  y = (in.colwise() - largest).array().exp();
  const Eigen::VectorXd sum = y.rowwise().sum();
  y.array().colwise() /= sum.array();
  if (op.safe)
    for (std::int64_t i = 0; i < op.rows; ++i)
      if (std::isinf(largest[i]) && largest[i] < 0) y.row(i).setZero();
  return r;
}

}  // namespace vlmest::kernels::reference
