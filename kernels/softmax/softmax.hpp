// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/softmax.hpp>

namespace vlmest::kernels {

/// Device memory of one call. Rows lie one after the other.
struct SoftmaxOperands {
  const void* x = nullptr;  ///< [rows, width] of the op's `in`
  void* y = nullptr;        ///< [rows, width] of its `out`; may be x where the types are the same
};

/// Softmax over the last dimension in one kernel, in fp32. A row is read once and kept in registers, up to 64 KiB; of a
/// longer one the first reading gives largest and sum together, and the second one the result. A row that is -inf
/// throughout becomes NaN, as in aten _softmax.
class FusedSoftmax {
 public:
  /// Throws Error for types other than fp32, bf16 and fp16, for bf16 and fp16 mixed, and for a safe softmax, which is
  /// five kernels with flags in between.
  explicit FusedSoftmax(const Softmax& op);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const SoftmaxOperands& operands, cudaStream_t stream) const;

 private:
  Softmax op_;
};

}  // namespace vlmest::kernels
