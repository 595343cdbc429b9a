// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/cost.hpp>

namespace vlmest {

/// Softmax over the last dimension: aten _softmax. `out` differs from `in` where the call asks for a type
/// (softmax(x, dtype=float32) reads 16-bit scores and writes fp32).
struct Softmax {
  std::int64_t rows = 1;
  std::int64_t width = 1;
  DType in = DType::bf16;
  DType out = DType::bf16;
  /// aten _safe_softmax (attention.cpp, _scaled_dot_product_attention_math): rows that are all -inf become 0. A boolean
  /// for every score, one for every row and a scalar are scratch.
  bool safe = false;
  bool fused = false;  ///< as Norm::fused
};

/// The longest row that one warp holds in its registers (aten/src/ATen/native/cuda/SoftMax.cu, host_softmax; fp32 rows
/// of up to 8 KiB); longer ones are read again for each pass.
inline constexpr std::int64_t warp_softmax_width = 2048;

constexpr Cost cost(const Softmax& o) {
  const Elements n{checked_mul(o.rows, o.width)};
  Cost c{.read = size_of(n, o.in), .written = size_of(n, o.out), .engine = Engine::cuda_core, .dtype = o.out};
  if (o.safe) {
    const Bytes flags = size_of(n, DType::boolean), rows = size_of(Elements(o.rows), DType::boolean);
    c.workspace = flags + rows + size_of(Elements(1), o.out);
    c.read += size_of(n, o.in) + flags + size_of(n, o.out) + rows;
    c.written += flags + rows + size_of(n, o.out);
    c.kernels = 5;
  }
  return c;
}

}  // namespace vlmest
