// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace vlmest::allocator {

inline constexpr std::int32_t none = -1;

/// What a stretch of device memory is in. `awaiting` is freed by its owner while another stream may still use it;
/// `unmapped` is address space of an expandable segment without memory behind it; `spare` names an unused record.
enum class BlockState : std::uint8_t { spare, cached, unmapped, allocated, awaiting };

/// Blocks of up to 1 MiB and larger ones never mix.
enum class Pool : std::uint8_t { small, large };

/// A piece of a segment, kept in one array and named by its index there; links are indices, `none` ends a chain. One
/// cache line each.
struct alignas(64) BlockRecord {
  std::int64_t address = 0;
  std::int64_t size = 0;
  /// What the owner asked for. A cached block keeps what its last owner asked for, as torch's snapshots show it.
  std::int64_t requested = 0;
  std::int32_t prev = none, next = none;            ///< neighbours by address in the same segment
  std::int32_t free_prev = none, free_next = none;  ///< neighbours in a free list; free_next also chains spare records
  std::uint16_t bin = 0;                            ///< of its free list, while cached
  std::uint16_t pool = 0;                           ///< 2 * stream + Pool
  std::int16_t range = none;                        ///< the expandable segment that it lies in
  BlockState state = BlockState::spare;

  bool alone() const { return (prev & next) == none; }  ///< a whole segment: no index is negative but `none`
};

constexpr Pool pool_kind(std::uint16_t pool) { return static_cast<Pool>(pool & 1); }

}  // namespace vlmest::allocator
