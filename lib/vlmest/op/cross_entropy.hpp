// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/memory.hpp>

namespace vlmest {

/// The forward of a fused cross-entropy: logits[rows, vocab] against int64 targets[rows] gives the fp32 loss of each
/// row, log(sum exp(x)) - x[target], and their mean. One pass over the logits: the largest and the sum are kept
/// together and rescaled as the largest grows (Milakov, Gimelshein, Online normalizer calculation for softmax,
/// arXiv:1805.02867, algorithm 3). A second kernel reads the rows' losses for the mean.
struct CrossEntropy {
  std::int64_t rows = 1;
  std::int64_t vocab = 1;
  DType dtype = DType::fp32;
};

constexpr MemoryOp memory_op(const CrossEntropy& o) {
  const Bytes logits = size_of(Elements(checked_mul(o.rows, o.vocab)), o.dtype);
  const Bytes targets = size_of(Elements(o.rows), DType::int64), losses = size_of(Elements(o.rows), DType::fp32);
  return {.read = logits + targets * 2 + losses,
          .written = losses + size_of(Elements(1), DType::fp32),
          .dtype = o.dtype,
          .kernels = 2,
          .access = Access::fused};
}
constexpr Cost cost(const CrossEntropy& o) { return cost(memory_op(o)); }

}  // namespace vlmest
