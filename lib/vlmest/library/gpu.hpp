// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vlmest {

/// Threads that are resident on one multiprocessor at most, by compute capability, 10 * major + minor (CUDA C++
/// Programming Guide, "Technical Specifications per Compute Capability").
constexpr std::int64_t resident_threads(int sm) {
  if (sm == 75) return 1024;
  if (sm == 86 || sm == 87 || sm == 89 || sm >= 110) return 1536;
  return 2048;
}

/// Bytes of shared memory that a block can have at most (the same table).
constexpr std::int64_t block_shared_memory(int sm) {
  const std::int64_t kib = sm < 75                             ? 96
                           : sm == 75                          ? 64
                           : sm == 80 || sm == 87              ? 163
                           : sm == 86 || sm == 89 || sm >= 120 ? 99
                                                               : 227;
  return kib * 1024;
}

/// What the libraries ask of the GPU that runs their kernels; an H200's where nothing else is said.
struct Gpu {
  int sm = 90;  ///< compute capability, 10 * major + minor
  int multiprocessors = 132;

  /// Blocks of so many threads that run at a time, where their registers and shared memory allow it. It decides how far
  /// some kernels are split, and with that their scratch.
  constexpr std::int64_t blocks(std::int64_t of_threads) const {
    return multiprocessors * (resident_threads(sm) / of_threads);
  }
};

}  // namespace vlmest
