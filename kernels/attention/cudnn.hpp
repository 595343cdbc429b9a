// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <cuda_runtime.h>
#include <kernels/attention/attention.hpp>

namespace vlmest::kernels {

/// The vendor's fused attention: the graph that cuDNN fuses into one kernel (product, scale, causal mask, softmax,
/// product), by the engine that its heuristic puts first. bf16 and fp16. Throws Error where the library was built
/// without cuDNN, or cuDNN has no engine for the op: head sizes are multiples of 8, and under a causal mask there must
/// be no more queries than keys.
class CudnnAttention {
 public:
  explicit CudnnAttention(const Attention& op);

  /// Whether this build has cuDNN.
  static bool built();

  /// Given by the caller.
  Bytes workspace() const;
  std::string_view name() const { return "cudnn"; }
  /// Not for two threads at a time: the stream is set in the object's handle.
  void operator()(const AttentionOperands& operands, cudaStream_t stream) const;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

}  // namespace vlmest::kernels
