// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/rope.hpp>

namespace vlmest::kernels {

/// Device memory of one call, dense.
struct RopeOperands {
  const void* q = nullptr;    ///< [batch, rows, heads, head_dim]
  const void* k = nullptr;    ///< [batch, rows, kv_heads, head_dim]
  const void* cos = nullptr;  ///< [rows, head_dim] of the op's `angles`
  const void* sin = nullptr;  ///< as cos
  void* q_out = nullptr;      ///< as q; may be q
  void* k_out = nullptr;      ///< as k; may be k
};

/// x * cos + rotate_half(x) * sin for queries and keys in one kernel, where rotate_half puts the negated second half of
/// a head before its first (transformers 5.17 modeling_llama.py, apply_rotary_pos_emb). Computed in fp32, rounded once.
/// A thread keeps the angles of its channels and turns several heads with them.
class FusedRope {
 public:
  /// Throws Error for types other than fp32, bf16 and fp16, for angles that are neither fp32 nor of the op's type, for
  /// a head size that is odd or above 512, and where only a part of a head turns.
  explicit FusedRope(const RotaryEmbedding& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const RopeOperands& operands, cudaStream_t stream) const;

 private:
  RotaryEmbedding op_;
};

}  // namespace vlmest::kernels
