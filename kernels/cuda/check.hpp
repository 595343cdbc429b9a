// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include <cuda_runtime.h>

#include <vlmest/unit/error.hpp>

namespace vlmest::cuda {

/// "matmul.cu:42": the file without its folders, so that a message does not depend on where the sources lie.
inline std::string spelt(const std::source_location& where) {
  std::string_view file = where.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  return std::string(file) + ":" + std::to_string(where.line());
}

/// What a user can do about the commoner failures of the CUDA runtime.
inline std::string hint(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return "take smaller sizes or free memory of the GPU";
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver: return "run on a machine with an NVIDIA GPU and a driver as new as the toolkit";
    case cudaErrorNoKernelImageForDevice: return "build with CMAKE_CUDA_ARCHITECTURES set to this GPU's architecture";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress: return "run the same command under compute-sanitizer";
    default: return {};
  }
}

/// Throws Error where a call of the CUDA runtime failed. Headers named check_<library>.hpp add the other libraries.
/// After a launch: check(cudaGetLastError()).
inline void check(cudaError_t status, std::source_location where = std::source_location::current()) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // otherwise the next launch would be blamed for this failure as well
  throw Error(spelt(where), std::string(cudaGetErrorName(status)) + ", " + cudaGetErrorString(status), hint(status));
}

}  // namespace vlmest::cuda
