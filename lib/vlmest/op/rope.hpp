// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/op/memory.hpp>

namespace vlmest {

/// Rotary position embedding (Su et al., RoFormer, arXiv:2104.09864, section 3.2) of a layer's queries
/// [batch, rows, heads, head_dim] and keys [batch, rows, kv_heads, head_dim] in one kernel, as Liger-Kernel's rope.py.
/// cos and sin, [rows, rotary_dim] in their own type, are the same for every sequence of the batch and every head.
struct RotaryEmbedding {
  std::int64_t batch = 1;  ///< sequences that share the positions; 1 where each token has its own row of angles
  std::int64_t rows = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t rotary_dim = 1;  ///< the channels of a head that turn; the others move with them
  DType dtype = DType::bf16;
  DType angles = DType::bf16;  ///< of cos and sin
};

constexpr MemoryOp memory_op(const RotaryEmbedding& o) {
  const std::int64_t tokens = checked_mul(o.batch, o.rows);
  const Bytes vectors =
      size_of(Elements(checked_mul(tokens, checked_mul(checked_add(o.heads, o.kv_heads), o.head_dim))), o.dtype);
  const Bytes table = size_of(Elements(checked_mul(o.rows, o.rotary_dim)), o.angles);
  return {.read = vectors + table * 2, .written = vectors, .dtype = o.dtype, .access = Access::rotation};
}
constexpr Cost cost(const RotaryEmbedding& o) { return cost(memory_op(o)); }

}  // namespace vlmest
