// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What one multiprocessor holds at a time, by compute capability, 10 * major + minor (CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability").
namespace vlmest {

/// Threads that are resident at most.
constexpr std::int64_t resident_threads(int sm) {
  if (sm == 75) return 1024;
  if (sm == 86 || sm == 87 || sm == 89 || sm >= 110) return 1536;
  return 2048;
}

/// Bytes of shared memory that a block can have at most.
constexpr std::int64_t block_shared_memory(int sm) {
  const std::int64_t kib = sm < 75                             ? 96
                           : sm == 75                          ? 64
                           : sm == 80 || sm == 87              ? 163
                           : sm == 86 || sm == 89 || sm >= 120 ? 99
                                                               : 227;
  return kib * 1024;
}

/// How many blocks a device runs at a time decides how far some kernels are split, and with that their scratch.
struct Multiprocessors {
  std::int64_t count = 0;
  std::int64_t threads = 0;  ///< that are resident on each

  /// Blocks of so many threads that run at a time, where their registers and shared memory allow it.
  constexpr std::int64_t blocks(std::int64_t of_threads) const { return count * (threads / of_threads); }
};

constexpr Multiprocessors multiprocessors_of(int sm, std::int64_t count) { return {count, resident_threads(sm)}; }

}  // namespace vlmest
