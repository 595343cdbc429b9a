// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <vlmest/unit/error.hpp>
#include <vlmest/unit/units.hpp>

/// Sizes and rounding rules of PyTorch 2.11's CUDA caching allocator. The constants keep torch's meaning under readable
/// names; each comment gives the name in c10/core/AllocatorConfig.h.
namespace vlmest::allocator {

inline constexpr std::int64_t min_block_size = 512;              ///< kMinBlockSize: every size is a multiple of it
inline constexpr std::int64_t small_size = 1 << 20;              ///< kSmallSize: the largest request of the small pool
inline constexpr std::int64_t small_segment_size = 2 << 20;      ///< kSmallBuffer: one segment of the small pool
inline constexpr std::int64_t large_segment_default = 20 << 20;  ///< kLargeBuffer: one segment for 1 to 10 MiB
inline constexpr std::int64_t min_large_alloc = 10 << 20;  ///< kMinLargeAlloc: from here a request gets its own segment
inline constexpr std::int64_t round_large = 2 << 20;       ///< kRoundLarge: those segments are multiples of it
inline constexpr std::int64_t max_request = std::int64_t{1} << 60;  ///< one_exa_bytes: refused before anything is tried
inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
inline constexpr int round_up_intervals = 16;  ///< kRoundUpPowerOfTwoIntervals: 1 MiB, 2 MiB, ... 64 GiB

/// The settings of PYTORCH_ALLOC_CONF that are modelled, at torch's defaults, and the memory that segments may take.
struct AllocatorConfig {
  /// Most that all segments together may hold; a segment beyond it first makes the allocator give back its cache.
  Bytes capacity{no_limit};
  /// max_split_size_mb: blocks of this size and more are neither split nor handed to smaller requests.
  Bytes max_split_size{no_limit};
  /// max_non_split_rounding_mb: by how much such a block may exceed the request that it serves.
  Bytes max_non_split_rounding{large_segment_default};
  /// large_segment_size_mb: the segment that a request of 1 to 10 MiB opens.
  Bytes large_segment_size{large_segment_default};
  /// roundup_power2_divisions: for sizes of 2^20, 2^21, ... bytes (below and above: the first and the last entry) the
  /// number of steps between two powers of two that sizes are rounded up to; 0 and 1 mean plain 512-byte rounding.
  std::array<std::int32_t, round_up_intervals> roundup_power2_divisions{};

  bool operator==(const AllocatorConfig&) const = default;
};

/// Throws Error for a setting that torch's parser refuses or that breaks the allocator's invariants.
/// Source: c10/core/AllocatorConfig.cpp, parseMaxSplitSize and parseRoundUpPower2Divisions.
constexpr void check(const AllocatorConfig& c) {
  if (c.capacity.value() < 0) throw Error("allocator.capacity", "is negative", "give the device's usable memory");
  if (c.large_segment_size.value() < min_large_alloc || c.large_segment_size.value() % round_large != 0)
    throw Error("allocator.large_segment_size", "is not a multiple of 2 MiB from 10 MiB on",
                "torch's default is 20 MiB");
  if (c.max_split_size.value() <= c.large_segment_size.value())
    throw Error("allocator.max_split_size", "is not larger than a large segment", "use more than 20 MiB");
  if (c.max_non_split_rounding.value() < large_segment_default)
    throw Error("allocator.max_non_split_rounding", "is below 20 MiB", "torch's default is 20 MiB");
  for (auto d : c.roundup_power2_divisions)
    if (d < 0 || (d != 0 && !std::has_single_bit(static_cast<std::uint32_t>(d))))
      throw Error("allocator.roundup_power2_divisions", "is not a power of two", "use 1, 2, 4, 8, ...");
}

/// The entry of roundup_power2_divisions that a size falls under
/// (AcceleratorAllocatorConfig::roundup_power2_divisions).
constexpr std::int64_t divisions_of(const AllocatorConfig& c, std::int64_t size) {
  const auto log2 = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size))) - 1;
  return c.roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log2 - 20, 0, round_up_intervals - 1))];
}

/// Bytes that a request counts as (round_size in c10/cuda/CUDACachingAllocator.cpp): a multiple of 512, or the next of
/// `divisions` equal steps between two powers of two where the request is larger than 512 times that number.
constexpr std::int64_t round_size(const AllocatorConfig& c, std::int64_t requested) {
  if (requested < min_block_size) return min_block_size;
  const auto divisions = divisions_of(c, requested);
  const auto up = [](std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; };
  if (divisions <= 1 || requested <= min_block_size * divisions) return up(requested, min_block_size);
  const auto floor = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(requested)));
  return up(requested, floor / divisions);
}
constexpr Bytes round_size(const AllocatorConfig& c, Bytes requested) {
  return Bytes(round_size(c, requested.value()));
}

/// Bytes of the segment that a rounded size opens where no cached block fits (get_allocation_size, same file).
constexpr std::int64_t segment_size(const AllocatorConfig& c, std::int64_t size) {
  if (size <= small_size) return small_segment_size;
  if (size < min_large_alloc) return c.large_segment_size.value();
  return (size + round_large - 1) / round_large * round_large;
}
constexpr Bytes segment_size(const AllocatorConfig& c, Bytes size) { return Bytes(segment_size(c, size.value())); }

}  // namespace vlmest::allocator
