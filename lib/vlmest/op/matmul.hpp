// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// out[batch, m, n] = a[batch, m, k] x b[batch, k, n] (+ bias[n]): aten mm, addmm, bmm, baddbmm and the product in
/// torch.nn.Linear, whose weight is stored [n, k].
struct Matmul {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  DType dtype = DType::bf16;
  bool bias = false;
  /// Elements from the beginning of one row or column of a and of b to the next (cuBLAS' leading dimensions); 0: k, as
  /// of dense rows of `a` and a weight stored [n, k]. What the copy engines can read depends on it, not on the shape.
  std::int64_t lda = 0;
  std::int64_t ldb = 0;
  constexpr bool operator==(const Matmul&) const = default;
};

constexpr Macs macs(const Matmul& o) { return Macs(checked_mul(checked_mul(o.batch, o.m), checked_mul(o.n, o.k))); }

/// Type of the result, and of the bias: torch._scaled_mm of fp8 operands gives bf16.
constexpr DType result_type(const Matmul& o) { return o.dtype == DType::fp8 ? DType::bf16 : o.dtype; }

/// FLOPs: torch/utils/flop_counter.py, mm_flop, addmm_flop, bmm_flop (the bias addition is not counted).
constexpr Cost cost(const Matmul& o) {
  const Elements a{checked_mul(checked_mul(o.batch, o.m), o.k)};
  const Elements b{checked_mul(checked_mul(o.batch, o.k), o.n)};
  const Elements c{checked_mul(checked_mul(o.batch, o.m), o.n)};
  Cost r;
  r.flops = r.flops_causal = flops(macs(o));
  r.read = size_of(a, o.dtype) + size_of(b, o.dtype);
  if (o.bias) r.read += size_of(Elements(o.n), result_type(o));
  r.written = size_of(c, result_type(o));
  r.engine = o.dtype == DType::fp32 || o.dtype == DType::fp64 ? Engine::cuda_core : Engine::tensor_core;
  r.dtype = o.dtype;
  return r;
}

}  // namespace vlmest
