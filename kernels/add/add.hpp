// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/elementwise.hpp>

namespace vlmest::kernels {

/// Device memory of one call: tensors of the op's elements each.
struct AddOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* out = nullptr;  ///< may be a or b
};

/// out = a + b in one kernel.
class Add {
 public:
  /// Throws Error for another kind than add, and for types other than fp32, bf16 and fp16.
  explicit Add(const Elementwise& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const AddOperands& operands, cudaStream_t stream) const;

 private:
  Elementwise op_;
};

}  // namespace vlmest::kernels
