// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/cross_entropy.hpp>

namespace vlmest::kernels {

/// Device memory of one call.
struct CrossEntropyOperands {
  const void* logits = nullptr;           ///< [rows, vocab]
  const std::int64_t* targets = nullptr;  ///< [rows]
  float* losses = nullptr;                ///< [rows]
  float* mean = nullptr;                  ///< one number
};

/// Loss of each row, log(sum exp(x)) - x[target], and the mean over the rows that count, as
/// torch.nn.functional.cross_entropy with its default reduction. One kernel reads the logits once, a block a row; a
/// second one, one block, adds up the losses in a fixed order. Rows whose target is `ignore_index` are not read and
/// have loss 0; where all are, the mean is NaN. A target outside the vocabulary gives NaN.
class OnlineCrossEntropy {
 public:
  /// Throws Error for types other than fp32, bf16 and fp16.
  explicit OnlineCrossEntropy(const CrossEntropy& op, std::int64_t ignore_index = -100);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  void operator()(const CrossEntropyOperands& operands, cudaStream_t stream) const;

 private:
  CrossEntropy op_;
  std::int64_t ignore_index_;
};

}  // namespace vlmest::kernels
