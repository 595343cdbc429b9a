// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>

namespace vlmest::kernels {

/// Tiled flash attention (Dao: FlashAttention-2, arXiv 2307.08691) on mma.sync and cp.async, for compute capability 8.0
/// and above: the same ops as FlashAttention, on every GPU since Ampere, by other instructions. No workspace.
class FlashMmaAttention {
 public:
  explicit FlashMmaAttention(const Attention& op);

  /// The head size that the products really work on: 72 runs as 80. 0: no kernel.
  static int padded_head_dim(std::int64_t head_dim);

  Bytes workspace() const { return {}; }
  std::string_view name() const { return "flash_mma"; }
  void operator()(const AttentionOperands& operands, cudaStream_t stream) const;

 private:
  Attention op_;
};

}  // namespace vlmest::kernels
