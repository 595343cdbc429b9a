// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <bench/harness/pool.hpp>
#include <bench/harness/prepared.hpp>

namespace vlmest::bench {

/// Operands of a call in device memory, `sets` times over, filled with fresh random numbers, and one workspace.
class OperandSets {
 public:
  OperandSets(const Prepared& prepared, std::int64_t sets, Pool& pool, std::uint64_t seed, cudaStream_t stream);

  std::int64_t sets() const { return sets_; }
  /// Addresses of a set's operands, in the order of Prepared::operands.
  std::span<void* const> of(std::int64_t set) const {
    return std::span(addresses_).subspan(static_cast<std::size_t>(set) * operands_, operands_);
  }
  void* workspace() const { return workspace_.data(); }

 private:
  std::int64_t sets_;
  std::size_t operands_;
  std::vector<PoolBuffer> blocks_;  ///< one for each operand, holding all sets
  std::vector<void*> addresses_;
  PoolBuffer workspace_;
};

/// What one set of operands and the workspace take from the pool: its high-water mark above what was in use.
Bytes measured_memory(const Prepared& prepared, Pool& pool, cudaStream_t stream);

}  // namespace vlmest::bench
