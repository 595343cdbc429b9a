// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>
#include <vlmest/diagnose/evidence/snapshot/timeline.hpp>

namespace vlmest::diagnose {

/// A request that found no room: an oom of the trace.
struct OomRequest {
  std::size_t event = 0;
  Bytes size;         ///< rounded as the allocator rounds: the tensor has up to 511 bytes less
  Bytes segment;      ///< what was asked of the driver: the size that the message prints
  Bytes device_free;  ///< what the driver had left
  StackTable::Stack stack = 0;
  allocator::Stream stream = 0;
  std::int64_t time_us = 0;
};

/// How the reserved memory stood at a moment. reserved = active + whole + split.
struct ReservedMemory {
  Bytes reserved, active;
  Bytes whole;         ///< in segments without any active block: empty_cache() gives them back
  Bytes split;         ///< free between active blocks
  Bytes largest_free;  ///< the largest piece of whole and split
  Bytes usable;        ///< of whole and split, what lies in the request's stream and pool
  Bytes largest_usable;
  std::size_t pieces = 0;  ///< free pieces of the request's stream and pool
  Bytes private_pools;     ///< segments of CUDA graphs and MemPools, part of reserved
  /// Whether the request would fit if the usable pieces were one: the memory is there, but not in one piece.
  bool in_pieces = false;
  /// The same with what the driver still has: more than one allocation was in the way.
  bool in_pieces_with_device = false;
  Bytes missing;  ///< what the request lacks if all free memory, also the driver's, were one piece
};

namespace fragments {

struct Extent {
  std::int64_t size = 0;
  allocator::Stream stream = 0;
  bool small = false, is_private = false, expandable = false;
};
using Extents = std::map<std::uint64_t, Extent>;  ///< by address

void take(Extents& extents, std::uint64_t address, std::int64_t size);

/// The segments before event `at`: those at the end, with the later events undone.
Extents extents_at(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace, std::size_t at);

}  // namespace fragments

/// The reserved memory right before event `at`, and whether a request would find room in it. In the caching allocator
/// neighbouring free blocks of a segment are always one, so a free piece is what lies between two active blocks.
/// Source: c10/cuda/CUDACachingAllocator.cpp (try_merge_blocks, get_free_block: of the same stream and pool).
ReservedMemory reserved_memory(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace,
                               const SnapshotTimeline& t, std::size_t at, const std::optional<OomRequest>& request);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/fragmentation.hpp>
#endif
