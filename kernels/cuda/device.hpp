// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <cuda_runtime.h>
#include <kernels/cuda/check.hpp>

#include <vlmest/unit/units.hpp>

namespace vlmest::cuda {

/// True where a CUDA device can be used. Never throws.
inline bool available() {
  int count = 0;
  const bool found = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  static_cast<void>(cudaGetLastError());
  return found;
}

// Of the current device. Single attributes are read in microseconds; cudaGetDeviceProperties takes milliseconds.

inline int attribute(cudaDeviceAttr which, std::source_location where = std::source_location::current()) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), where);
  check(cudaDeviceGetAttribute(&value, which, device), where);
  return value;
}

/// Compute capability as 10 * major + minor: 90 on Hopper.
inline int sm() {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
}
inline int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }
inline Bytes l2_size() { return Bytes(attribute(cudaDevAttrL2CacheSize)); }
/// The most shared memory that a block can be given (cudaFuncAttributeMaxDynamicSharedMemorySize).
inline Bytes shared_memory_per_block() { return Bytes(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)); }

/// The vendor's name of the product.
inline std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&device));
  check(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

}  // namespace vlmest::cuda
