// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>

namespace vlmest::kernels {

/// Tiled flash attention (Dao: FlashAttention-2, arXiv 2307.08691) on Hopper's warpgroup matrix units: bf16 and fp16,
/// head sizes 64, 72, 80, 128 and 256, any lengths, grouped queries, causal or not. Scores stay on the chip; no
/// workspace. Needs compute capability 9.0 (Error elsewhere; FlashMmaAttention runs from 8.0 on).
class FlashAttention {
 public:
  struct Options {
    /// Warpgroups take turns at the matrix units (Shah et al.: FlashAttention-3, arXiv 2407.08608, section 3.1).
    bool ping_pong = false;
  };

  explicit FlashAttention(const Attention& op) : FlashAttention(op, Options{}) {}
  FlashAttention(const Attention& op, Options options);

  /// The head size that the products really work on, and so what they cost: 72 runs as 80. 0: no kernel.
  static int padded_head_dim(std::int64_t head_dim);
  /// Rows of queries per block and keys per tile: the last ones are computed whole, whatever the lengths.
  static int query_rows(std::int64_t head_dim);
  static int key_rows(std::int64_t head_dim);

  Bytes workspace() const { return {}; }
  std::string_view name() const { return "flash"; }
  void operator()(const AttentionOperands& operands, cudaStream_t stream) const;

 private:
  Attention op_;
  Options options_;
};

}  // namespace vlmest::kernels
