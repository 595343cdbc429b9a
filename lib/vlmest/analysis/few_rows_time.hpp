// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/analysis/tiled_time.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/op/matmul.hpp>

/// 16-bit products of a few rows that begin at no multiple of 16 bytes: kernels without tensor cores, which cuBLAS
/// keeps for them (gemvx, gemv2T, gemmSN_TN). When it does, and how their times grow, was read off 5,500 choices of
/// cuBLASLt 13.1 for up to 16 rows on compute capability 9.0, and off the durations of 187 of them; the rules below
/// name nine choices in ten.
namespace vlmest::few_rows {

/// Of a single row: a warp computes a result, up to so many elements of the weight and of the inner dimension. Beyond,
/// blocks of threads share one.
inline constexpr double most_of_warps = 2e6, deepest_of_warps = 6000;
/// From here on blocks also share the inner dimension, and a second kernel adds.
inline constexpr std::int64_t split_depth = 5900;

/// Rows that gemmSN_TN computes, each thread a column of them. It goes through the inner dimension in one piece: below
/// 120 elements, or where too few columns stand against a deep one, kernels of tensor cores run.
inline constexpr std::int64_t most_rows = 10, least_depth = 120;
constexpr bool columns(const Matmul& o) {
  if (o.k < least_depth || o.m > most_rows) return false;
  return o.m <= 5 ? o.k <= 2048 || (o.n >= 1400 && 6 * o.n >= o.k) : o.n >= 1056 && o.n >= o.k;
}

/// Whether one of these kernels runs a product.
constexpr bool runs(const Matmul& o) {
  const bool half = o.dtype == DType::bf16 || o.dtype == DType::fp16;
  const int row = tiled::row_alignment(o);
  if (!half || o.batch != 1 || row >= 16) return false;
  return o.m == 1 || (row == 2 && columns(o));
}

/// Its time. A dot product waits for its own chain of additions, a multiprocessor computes its share of the results one
/// after the other, and DRAM brings the weight.
inline OpTime time(const Matmul& o, const Device& d, const FewRowsEfficiency& e) {
  const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n), k = static_cast<double>(o.k);
  const double share = n / std::max(1, d.multiprocessors);
  const Cost c = cost(o);
  OpTime r;
  r.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  if (o.m > 1) {
    const Seconds chain = o.m == 2 ? e.two : o.m == 3 ? e.three : o.m == 4 ? e.four : e.row * m;
    r.start = e.start;
    r.compute = tiled::overlapped(chain * k, (e.column + e.cell * m) * (share * k));
  } else if (n * k <= most_of_warps && k <= deepest_of_warps) {
    r.start = e.start;
    r.compute = tiled::overlapped(e.chain * k, (e.dot + e.element * k) * share);
  } else {
    r.start = e.blocks + (o.k >= split_depth ? e.split : Seconds{});
  }
  const double factor = e.correction({m, n, k});
  r.time = (r.start + tiled::overlapped(r.compute, r.memory)) * factor;
  if (o.bias) {
    r.start += e.bias;
    r.time += e.bias;
  }
  return r;
}

}  // namespace vlmest::few_rows
