// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cufft.h>
#include <kernels/cuda/check.hpp>

namespace vlmest::cuda {

/// cuFFT has no function for this.
constexpr std::string_view name(cufftResult status) {
  switch (status) {
    case CUFFT_SUCCESS: return "CUFFT_SUCCESS";
    case CUFFT_INVALID_PLAN: return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED: return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_TYPE: return "CUFFT_INVALID_TYPE";
    case CUFFT_INVALID_VALUE: return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR: return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED: return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED: return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE: return "CUFFT_INVALID_SIZE";
    case CUFFT_UNALIGNED_DATA: return "CUFFT_UNALIGNED_DATA";
    case CUFFT_INVALID_DEVICE: return "CUFFT_INVALID_DEVICE";
    case CUFFT_NO_WORKSPACE: return "CUFFT_NO_WORKSPACE";
    case CUFFT_NOT_IMPLEMENTED: return "CUFFT_NOT_IMPLEMENTED";
    case CUFFT_NOT_SUPPORTED: return "CUFFT_NOT_SUPPORTED";
    default: return "an unknown cuFFT status";
  }
}

/// Throws Error where a call of cuFFT failed.
inline void check(cufftResult status, std::source_location where = std::source_location::current()) {
  if (status == CUFFT_SUCCESS) return;
  throw Error(spelt(where), std::string(name(status)),
              status == CUFFT_ALLOC_FAILED     ? "take a smaller batch or free memory of the GPU"
              : status == CUFFT_INTERNAL_ERROR ? "cuFFT answers this where it finds no usable GPU, too"
                                               : "");
}

}  // namespace vlmest::cuda
