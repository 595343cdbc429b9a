// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <vlmest/unit/count.hpp>

/// What the references share: dense tensors in double as rows.
namespace vlmest::kernels::reference {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Throws Error where a span has another size than the op says.
template <class T>
void expect_size(std::span<const T> s, std::int64_t n, const char* which) {
  if (static_cast<std::int64_t>(s.size()) != n)
    throw Error("reference", std::string(which) + " has " + std::to_string(s.size()) + " elements, the op says " +
                                 std::to_string(n));
}

/// `values` as a matrix; throws Error where their number is another.
inline Eigen::Map<const RowMatrix> rows_of(std::span<const double> values, std::int64_t rows, std::int64_t width,
                                           const char* which) {
  expect_size(values, checked_mul(rows, width), which);
  return {values.data(), rows, width};
}

inline Eigen::Map<RowMatrix> rows_of(std::vector<double>& values, std::int64_t rows, std::int64_t width) {
  values.resize(static_cast<std::size_t>(checked_mul(rows, width)));
  return {values.data(), rows, width};
}

}  // namespace vlmest::kernels::reference
