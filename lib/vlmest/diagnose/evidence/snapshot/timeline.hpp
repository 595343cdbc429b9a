// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <vlmest/allocator/config_text.hpp>
#include <vlmest/diagnose/evidence/snapshot/recorded.hpp>

namespace vlmest::diagnose {

inline constexpr std::size_t never = SIZE_MAX;

/// One use of a block. Event numbers are indices of the device's trace; what was there before the trace has born ==
/// never, what is there at its end has requested_free == never or freed == never.
struct Allocation {
  std::uint64_t address = 0;
  Bytes requested, size;  ///< without and with the allocator's rounding
  std::size_t born = never;
  std::size_t given_up = never;  ///< free_requested: the tensor is gone; torch's allocated_bytes ends here
  std::size_t freed = never;     ///< free_completed: no stream uses the block any more; active_bytes ends here
  StackTable::Stack stack = 0;
  allocator::Stream stream = 0;

  bool older() const { return born == never; }
  /// Whether the memory is taken right before event i.
  bool active_at(std::size_t i) const { return (older() || born < i) && freed >= i; }
};

/// Memory of one device over its trace. Curves have one value more than events: before each event, and at the end.
struct SnapshotTimeline {
  std::vector<Allocation> allocations;
  std::vector<std::int64_t> active;    ///< bytes in blocks that are allocated or await their free
  std::vector<std::int64_t> reserved;  ///< bytes of segments
  Bytes peak;                          ///< of `active`
  std::size_t peak_at = 0;             ///< the first index of `active` that holds it
  Bytes peak_allocated;                ///< as torch.cuda.max_memory_allocated() counts: up to the request to free
  Bytes peak_reserved;
  std::uint64_t unmatched = 0;  ///< allocations of the trace that the snapshot's blocks contradict
};

namespace timelining {

using Open = std::unordered_map<std::uint64_t, std::uint32_t>;  ///< by address: an allocation that is not freed yet

std::vector<Allocation> lifetimes(std::span<const TraceEntry> trace, const allocator::AllocatorConfig& config,
                                  Open& open);

/// The blocks at the end know their exact sizes; those that no event speaks of were there before the trace.
void take_blocks(SnapshotTimeline& t, Open& open, const RecordedSnapshot& s, std::int64_t device);

/// Sums of what begins and ends at each event. `end` picks the event that ends an allocation.
template <class End>
std::vector<std::int64_t> curve(const std::vector<Allocation>& all, std::size_t events, End end) {
  std::vector<std::int64_t> sums(events + 1, 0);
  for (const auto& a : all) {
    // Before event `born` it is not there yet: it counts from the next index on.
    const auto from = a.older() ? 0 : a.born + 1;
    sums[from] = checked_add(sums[from], a.size.value());
    if (const auto last = end(a); last < events) sums[last + 1] = checked_sub(sums[last + 1], a.size.value());
  }
  for (std::size_t i = 1; i <= events; ++i) sums[i] = checked_add(sums[i], sums[i - 1]);
  return sums;
}

std::vector<std::int64_t> reserved(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace);

}  // namespace timelining

/// Who held memory when, on one device. The trace holds the last events only, so its beginning is found from its end: a
/// block that is freed without having been allocated was there before, and so was one at the end that no event names.
/// Sizes are rounded as the allocator rounds; a block that it left larger, by up to 1 MiB, shows so only where it is
/// still there at the end (allocator/reproduce.hpp knows the others).
/// An allocation counts until its free is complete, which on one stream is when the free is requested.
/// Source: torch/cuda/_memory_viz.py (and MemoryViz.js), which do the same with requested frees.
SnapshotTimeline timeline(const RecordedSnapshot& s, std::int64_t device, const allocator::AllocatorConfig& config);

}  // namespace vlmest::diagnose

#ifndef VLMEST_COMPILED
#include <vlmest/diagnose/evidence/snapshot/impl/timeline.hpp>
#endif
