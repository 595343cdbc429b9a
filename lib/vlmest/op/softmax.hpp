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
};

constexpr Cost cost(const Softmax& o) {
  const Elements n{checked_mul(o.rows, o.width)};
  return {.read = size_of(n, o.in), .written = size_of(n, o.out), .engine = Engine::cuda_core, .dtype = o.out};
}

}  // namespace vlmest
