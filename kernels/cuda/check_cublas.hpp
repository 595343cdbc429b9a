// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <kernels/cuda/check.hpp>

namespace vlmest::cuda {

/// Throws Error where a call of cuBLAS or cuBLASLt failed.
inline void check(cublasStatus_t status, std::source_location where = std::source_location::current()) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(
      spelt(where), std::string(cublasLtGetStatusName(status)) + ", " + cublasLtGetStatusString(status),
      status == CUBLAS_STATUS_NOT_SUPPORTED ? "cuBLASLt has no kernel for these types, sizes and alignments" : "");
}

}  // namespace vlmest::cuda
