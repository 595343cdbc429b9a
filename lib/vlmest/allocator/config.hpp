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
inline constexpr std::int64_t page_granularity = 2 << 20;  ///< what cuMemCreate hands out at least
inline constexpr std::int64_t max_request = std::int64_t{1} << 60;  ///< one_exa_bytes: refused before anything is tried
inline constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
inline constexpr int round_up_intervals = 16;  ///< kRoundUpPowerOfTwoIntervals: 1 MiB, 2 MiB, ... 64 GiB

/// The settings of PYTORCH_ALLOC_CONF that decide where blocks lie, at torch's defaults, and the memory that segments
/// may take. Read from torch's text by parse_allocator_config (config_text.hpp).
struct AllocatorConfig {
  /// Most that all segments together may hold: beyond it cudaMalloc (or cuMemCreate) fails, and the allocator gives
  /// back its cache.
  Bytes capacity{no_limit};
  /// cudaDeviceProp::totalGlobalMem: what memory_fraction is a part of, and 8/9 of an expandable segment's address
  /// range. 0 where it is not known: an address range then spans 1 TiB.
  Bytes total_memory{};
  /// per_process_memory_fraction, or torch.cuda.set_per_process_memory_fraction: below 1, that part of total_memory may
  /// be reserved at most.
  double memory_fraction = 1;
  /// garbage_collection_threshold: above this part of the allowed memory, old cached segments are given back before a
  /// new one is opened; 0 is off. As in torch it acts only where memory_fraction is below 1.
  double garbage_collection_threshold = 0;
  /// expandable_segments: new memory is mapped in pages at the end of one address range per stream and pool.
  bool expandable_segments = false;
  /// max_split_size_mb: blocks of this size and more are neither split nor handed to smaller requests.
  Bytes max_split_size{no_limit};
  /// max_non_split_rounding_mb: by how much such a block may exceed the request that it serves.
  Bytes max_non_split_rounding{large_segment_default};
  /// large_segment_size_mb: the segment that a request of 1 to 10 MiB opens, and the page of a large expandable
  /// segment.
  Bytes large_segment_size{large_segment_default};
  /// roundup_power2_divisions: for sizes of 2^20, 2^21, ... bytes (below and above: the first and the last entry) the
  /// number of steps between two powers of two that sizes are rounded up to; 0 and 1 mean plain 512-byte rounding.
  std::array<std::int32_t, round_up_intervals> roundup_power2_divisions{};

  bool operator==(const AllocatorConfig&) const = default;
};

/// Throws Error for a setting that torch's parser refuses or that its allocator cannot work with.
/// Source: c10/core/AllocatorConfig.cpp (parseLargeSegmentSize, parseMaxSplitSize, parseMaxNonSplitRoundingSize,
/// parseGarbageCollectionThreshold, parseRoundUpPower2Divisions) and setMemoryFraction in
/// c10/cuda/CUDACachingAllocator.cpp.
constexpr void check(const AllocatorConfig& c) {
  if (c.capacity.value() < 0) throw Error("allocator.capacity", "is negative", "give the device's usable memory");
  if (c.total_memory.value() < 0) throw Error("allocator.total_memory", "is negative", "give the device's memory");
  if (!(c.memory_fraction >= 0 && c.memory_fraction <= 1))
    throw Error("allocator.memory_fraction", "is not within 0 and 1", "1 sets no limit");
  if (c.memory_fraction < 1 && c.total_memory == Bytes())
    throw Error("allocator.memory_fraction", "is a part of an unknown total_memory", "give the device's memory");
  if (!(c.garbage_collection_threshold >= 0 && c.garbage_collection_threshold < 1))
    throw Error("allocator.garbage_collection_threshold", "is not between 0 and 1", "0 is off");
  const auto large = c.large_segment_size.value();
  if (large <= min_large_alloc || large % (1 << 20) != 0)
    throw Error("allocator.large_segment_size", "is not a number of MiB above 10", "torch's default is 20 MiB");
  if (c.expandable_segments && large % page_granularity != 0)
    throw Error("allocator.large_segment_size", "is not a multiple of 2 MiB, the pages of expandable segments",
                "torch's default is 20 MiB");
  if (c.max_split_size.value() < large)
    throw Error("allocator.max_split_size", "is smaller than a large segment", "use 20 MiB or more");
  if (c.max_non_split_rounding.value() < large)
    throw Error("allocator.max_non_split_rounding", "is smaller than a large segment", "torch's default is 20 MiB");
  for (auto d : c.roundup_power2_divisions)
    if (d < 0 || (d != 0 && !std::has_single_bit(static_cast<std::uint32_t>(d))))
      throw Error("allocator.roundup_power2_divisions", "is not a power of two", "use 1, 2, 4, 8, ...");
}

/// What all segments together may hold by memory_fraction (setMemoryFraction: allowed_memory_maximum).
constexpr std::int64_t allowed_memory(const AllocatorConfig& c) {
  if (c.memory_fraction >= 1) return no_limit;
  return static_cast<std::int64_t>(c.memory_fraction * static_cast<double>(c.total_memory.value()));
}
/// The allowed memory that garbage collection keeps below, no_limit where it is off (garbage_collect_cached_blocks).
constexpr std::int64_t collection_limit(const AllocatorConfig& c) {
  if (c.memory_fraction >= 1 || c.garbage_collection_threshold <= 0) return no_limit;
  return static_cast<std::int64_t>(c.garbage_collection_threshold * static_cast<double>(allowed_memory(c)));
}
/// Address range of an expandable segment with pages of `page` bytes: 1 1/8 of the device's memory (ExpandableSegment).
constexpr std::int64_t address_range(const AllocatorConfig& c, std::int64_t page) {
  const auto total = c.total_memory == Bytes() ? std::int64_t{1} << 40 : c.total_memory.value();
  return (checked_add(total, total / 8) + page - 1) / page * page;
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
