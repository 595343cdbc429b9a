// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>
#include <kernels/matmul/cublaslt_matmul.hpp>

namespace vlmest::kernels {

/// Attention with the scores in memory, as frameworks' eager implementations do it: q k^T through cuBLASLt, a kernel of
/// ours that scales, masks and takes the softmax in place (in fp32, stored in the operands' type), then p v through
/// cuBLASLt. Heads that share keys are rows of one product, so that nothing is repeated. bf16 and fp16, any sizes.
class NaiveAttention {
 public:
  explicit NaiveAttention(const Attention& op);

  /// The scores, batch x heads x q_len x kv_len elements.
  Bytes scores() const;
  /// The scores and the products' scratch; given by the caller.
  Bytes workspace() const;
  std::string_view name() const { return "naive"; }
  void operator()(const AttentionOperands& operands, cudaStream_t stream) const;

 private:
  Attention op_;
  CublasLtMatmul scores_, outputs_;
};

}  // namespace vlmest::kernels
