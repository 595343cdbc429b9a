// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/op/matmul.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest {

/// The tile of a result that one thread block computes, and into how many pieces the inner dimension is split.
struct ProductTiling {
  int m = 0, n = 0, split = 1;
  std::int64_t tiles = 0;  ///< of the result, times the split
};

/// How long a product takes, and why.
struct OpTime {
  Seconds time{};
  Seconds compute{};  ///< of the arithmetic in the waves of tiles
  Seconds memory{};   ///< of the compulsory bytes
  Seconds start{};    ///< that neither arithmetic nor bytes explain: the launch, and pipelines that wait for operands
  ProductTiling tiling;
};

namespace tiled {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The next whole number of a positive one, which may be a rounding error above a whole number itself.
inline double up(double x) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(x));
  return whole + (x > whole + 1e-9 ? 1 : 0);
}

/// The whole number below a positive one.
inline double down_to(double x) { return static_cast<double>(static_cast<std::int64_t>(x)); }

/// Depth of one step of the main loop: 128 bytes of each row (cuBLAS' kernels: 64 elements of 16 bits).
constexpr std::int64_t step_depth(DType t) { return std::max<std::int64_t>(1, 1024 / bits(t)); }

/// Bytes at whose multiples rows of so many elements begin, up to 128.
constexpr int alignment(std::int64_t elements, DType t) {
  const std::int64_t bytes = elements * bits(t) / 8;
  int a = 128;
  while (a > 1 && bytes % a != 0) a /= 2;
  return a;
}
/// The same of every row of both operands.
constexpr int operand_alignment(const Matmul& o) {
  return std::min(alignment(o.lda > 0 ? o.lda : o.k, o.dtype), alignment(o.ldb > 0 ? o.ldb : o.k, o.dtype));
}
/// Bytes at whose multiples every row of both operands and of the result begins, from 2 up to 16.
constexpr int row_alignment(const Matmul& o) {
  return std::clamp(std::min(alignment(o.n, o.dtype), operand_alignment(o)), 2, 16);
}
/// The kernels of tensor cores whose rows the copy engine brings.
constexpr bool copies_rows(const Matmul& o) {
  return row_alignment(o) == 16 && o.dtype != DType::fp32 && o.dtype != DType::fp64;
}

/// a and b overlapping: the p-norm, from their sum (p = 1) to the larger one.
inline Seconds overlapped(Seconds a, Seconds b, double p) {
  const double large = std::max(a.value, b.value), small = std::min(a.value, b.value);
  return {large <= 0 ? 0 : large * std::pow(1 + std::pow(small / large, p), 1 / p)};
}
/// The same for p = 4, by roots.
inline Seconds overlapped(Seconds a, Seconds b) {
  const double x = a.value * a.value, y = b.value * b.value;
  return {std::sqrt(std::sqrt(x * x + y * y))};
}

}  // namespace tiled

}  // namespace vlmest
