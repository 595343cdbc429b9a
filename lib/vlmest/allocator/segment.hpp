// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/allocator/block.hpp>
#include <vlmest/unit/units.hpp>

namespace vlmest::allocator {

/// Names an allocation; the empty one (a request for 0 bytes) occupies nothing and may be freed.
struct Block {
  std::int32_t index = none;
  bool operator==(const Block&) const = default;
};

/// An allocation and the bytes that it occupies, an unsplit remainder included.
struct Placed {
  Block block;
  Bytes size{};
};

/// A CUDA stream by its handle, as snapshots print it; 0 is the default stream.
using Stream = std::int64_t;

/// A segment and its blocks by address, as torch.cuda.memory_snapshot() lists them: one cudaMalloc, or one stretch of
/// mapped pages of an expandable segment.
struct Segment {
  struct Piece {
    std::int64_t address = 0;
    Bytes size, requested;                  ///< a cached piece still names its last owner's request
    BlockState state = BlockState::cached;  ///< cached ("inactive"), allocated or awaiting ("active_awaiting_free")
    bool allocated() const { return state == BlockState::allocated; }
    bool active() const { return state != BlockState::cached; }
    bool operator==(const Piece&) const = default;
  };
  std::int64_t address = 0;
  Bytes size;
  Pool pool = Pool::small;
  Stream stream = 0;
  bool expandable = false;
  std::vector<Piece> blocks;
  bool operator==(const Segment&) const = default;
};

/// allocated_size, active_size and requested_size of a snapshot's segment: sums over its blocks (snapshot() in
/// c10/cuda/CUDACachingAllocator.cpp).
inline Bytes allocated_size(const Segment& s) {
  Bytes sum{};
  for (const auto& b : s.blocks)
    if (b.allocated()) sum += b.size;
  return sum;
}
inline Bytes active_size(const Segment& s) {
  Bytes sum{};
  for (const auto& b : s.blocks)
    if (b.active()) sum += b.size;
  return sum;
}
inline Bytes requested_size(const Segment& s) {
  Bytes sum{};
  for (const auto& b : s.blocks)
    if (b.active()) sum += b.requested;
  return sum;
}

/// Where pages of an expandable segment are mapped sooner or later.
struct RangeBase {
  std::int64_t address = 0;
  Stream stream = 0;
  Pool pool = Pool::small;
};

/// How reserved memory is spent: `reserved` = active blocks + `releasable` + `split`.
struct Fragmentation {
  Bytes reserved{};
  Bytes releasable{};    ///< what empty_cache() would give back: cached whole segments, whole pages where expandable
  Bytes split{};         ///< cached between live blocks: only a request of its pool that fits one of them can use it
  Bytes largest_free{};  ///< the largest cached block
  bool operator==(const Fragmentation&) const = default;
};

}  // namespace vlmest::allocator
