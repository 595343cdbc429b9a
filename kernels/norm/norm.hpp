// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/op/norm.hpp>

namespace vlmest::kernels {

/// Device memory of one call. Rows lie one after the other.
struct NormOperands {
  const void* x = nullptr;       ///< [rows, width]
  const void* weight = nullptr;  ///< [width], where the op has 1 or 2 parameters
  const void* bias = nullptr;    ///< [width], where it has 2
  void* y = nullptr;             ///< [rows, width]; may be x
  float* mean = nullptr;         ///< [rows], written by a layer norm; null where nobody wants it
  float* rstd = nullptr;         ///< [rows], the reciprocal root; null where nobody wants it
};

/// Layer norm or RMS norm over the last dimension in one kernel, statistics in fp32. A row is read once and kept in
/// registers, up to 64 KiB; a longer one is read twice. The variance of a layer norm is taken about the mean (a second
/// sweep over the registers), for long rows by pairwise updates (Chan, Golub, LeVeque, Algorithms for Computing the
/// Sample Variance, The American Statistician 37(3), 1983).
class FusedNorm {
 public:
  /// Throws Error for types other than fp32, bf16 and fp16, and for rows that must be packed first.
  explicit FusedNorm(const Norm& op, float epsilon = 1e-5f);

  std::string_view name() const { return "own"; }
  Bytes workspace() const { return {}; }
  /// Throws Error where a parameter that the op has is null.
  void operator()(const NormOperands& operands, cudaStream_t stream) const;

 private:
  Norm op_;
  float epsilon_;
};

}  // namespace vlmest::kernels
