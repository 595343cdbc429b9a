// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>
#include <kernels/matmul/operands.hpp>

#include <vlmest/op/matmul.hpp>

namespace vlmest::kernels::reference {

/// Row-major, as every operand here.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// out[batch, m, n] in double. `bias` is read where the op has one. Throws Error where a span has another size than the
/// op says.
inline std::vector<double> matmul(const Matmul& op, std::span<const double> a, std::span<const double> b,
                                  std::span<const double> bias = {}, WeightLayout layout = WeightLayout::linear) {
  const auto expect = [](std::span<const double> s, std::int64_t n, const char* which) {
    if (static_cast<std::int64_t>(s.size()) != n)
      throw Error("reference.matmul", std::string(which) + " has another size");
  };
  expect(a, op.batch * op.m * op.k, "a");
  expect(b, op.batch * op.n * op.k, "b");
  expect(bias, op.bias ? op.n : 0, "bias");
  std::vector<double> out(static_cast<std::size_t>(op.batch * op.m * op.n));
  for (std::int64_t i = 0; i < op.batch; ++i) {
    const Eigen::Map<const Matrix> left(a.data() + i * op.m * op.k, op.m, op.k);
    const double* const weight = b.data() + i * op.n * op.k;
    Eigen::Map<Matrix> result(out.data() + i * op.m * op.n, op.m, op.n);
    if (layout == WeightLayout::linear)
      result.noalias() = left * Eigen::Map<const Matrix>(weight, op.n, op.k).transpose();
    else
      result.noalias() = left * Eigen::Map<const Matrix>(weight, op.k, op.n);
    if (op.bias) result.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias.data(), op.n);
  }
  return out;
}

}  // namespace vlmest::kernels::reference
