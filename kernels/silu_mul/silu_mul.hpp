// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/elementwise.hpp>

namespace vlmest::kernels {

/// Device memory of one call: tensors of the op's elements each.
struct SiluMulOperands {
  const void* gate = nullptr;
  const void* up = nullptr;
  void* out = nullptr;  ///< may be gate or up
};

/// out = gate / (1 + exp(-gate)) * up in one kernel: the gate of SwiGLU (Shazeer, GLU Variants Improve Transformer,
/// arXiv:2002.05202). The activation is not rounded in between, as it is where two kernels do this.
class SiluMul {
 public:
  /// Throws Error for another kind than silu_mul, and for types other than fp32, bf16 and fp16.
  explicit SiluMul(const Elementwise& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const SiluMulOperands& operands, cudaStream_t stream) const;

 private:
  Elementwise op_;
};

}  // namespace vlmest::kernels
