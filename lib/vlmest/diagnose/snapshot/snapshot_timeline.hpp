// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <vlmest/diagnose/snapshot/recorded_snapshot.hpp>
#include <vlmest/diagnose/snapshot/replayable_snapshot.hpp>

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

inline std::vector<Allocation> lifetimes(std::span<const TraceEntry> trace, const allocator::AllocatorConfig& config,
                                         Open& open) {
  using allocator::TraceAction;
  std::vector<Allocation> all;
  const auto add = [&](const TraceEntry& e) -> Allocation& {
    open[e.address] = static_cast<std::uint32_t>(all.size());
    return all.emplace_back(
        Allocation{e.address, e.size, round_size(config, e.size), never, never, never, 0, e.stream});
  };
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const auto& e = trace[i];
    if (e.action == TraceAction::alloc) {
      if (const auto known = open.find(e.address); known != open.end()) {
        auto& before = all[known->second];  // its free was not recorded
        before.given_up = std::min(before.given_up, i);
        before.freed = i;
      }
      auto& a = add(e);
      a.born = i;
      a.stack = e.stack;
    } else if (e.action == TraceAction::free_requested || e.action == TraceAction::free_completed) {
      const auto known = open.find(e.address);
      auto& a = known == open.end() ? add(e) : all[known->second];
      if (e.action == TraceAction::free_requested) {
        if (a.given_up == never) a.given_up = i;
      } else {
        a.freed = i;
        if (a.given_up == never) a.given_up = known == open.end() ? 0 : i;
        open.erase(e.address);
      }
    }
  }
  return all;
}

/// The blocks at the end know their exact sizes; those that no event speaks of were there before the trace.
inline void take_blocks(SnapshotTimeline& t, Open& open, const RecordedSnapshot& s, std::int64_t device) {
  bool any = false;
  for (const auto& segment : s.segments) {
    if (segment.device != device) continue;
    any = true;
    for (const auto& b : segment.blocks) {
      if (b.state == allocator::BlockState::cached) continue;
      if (const auto known = open.find(b.address); known != open.end()) {
        auto& a = t.allocations[known->second];
        a.size = b.size;
        a.requested = b.requested;
        if (a.stack == 0) a.stack = b.stack;
        open.erase(known);
      } else {
        t.allocations.push_back({b.address, b.requested, b.size, never, never, never, b.stack, segment.stream});
        if (b.state == allocator::BlockState::awaiting) t.allocations.back().given_up = 0;
      }
    }
  }
  if (any) t.unmatched = open.size();
}

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

inline std::vector<std::int64_t> reserved(const RecordedSnapshot& s, std::int64_t device,
                                          std::span<const TraceEntry> trace) {
  using allocator::TraceAction;
  std::vector<std::int64_t> curve(trace.size() + 1, 0);
  for (const auto& segment : s.segments)
    if (segment.device == device) curve.back() = checked_add(curve.back(), segment.size.value());
  for (std::size_t i = trace.size(); i-- > 0;) {
    const auto n = trace[i].size.value();
    const auto action = trace[i].action;
    const bool more = action == TraceAction::segment_alloc || action == TraceAction::segment_map;
    const bool less = action == TraceAction::segment_free || action == TraceAction::segment_unmap;
    curve[i] = more ? checked_sub(curve[i + 1], n) : less ? checked_add(curve[i + 1], n) : curve[i + 1];
  }
  return curve;
}

}  // namespace timelining

/// Who held memory when, on one device. The trace holds the last events only, so its beginning is found from its end: a
/// block that is freed without having been allocated was there before, and so was one at the end that no event names.
/// Sizes are rounded as the allocator rounds; a block that it left larger, by up to 1 MiB, shows so only where it is
/// still there at the end (allocator/reproduce.hpp knows the others).
/// An allocation counts until its free is complete, which on one stream is when the free is requested.
/// Source: torch/cuda/_memory_viz.py (and MemoryViz.js), which do the same with requested frees.
inline SnapshotTimeline timeline(const RecordedSnapshot& s, std::int64_t device,
                                 const allocator::AllocatorConfig& config) {
  const auto& traces = s.traces;
  const auto trace = device >= 0 && static_cast<std::size_t>(device) < traces.size()
                         ? std::span<const TraceEntry>(traces[static_cast<std::size_t>(device)])
                         : std::span<const TraceEntry>();
  SnapshotTimeline t;
  timelining::Open open;
  t.allocations = timelining::lifetimes(trace, config, open);
  timelining::take_blocks(t, open, s, device);
  t.active = timelining::curve(t.allocations, trace.size(), [](const Allocation& a) { return a.freed; });
  t.reserved = timelining::reserved(s, device, trace);
  const auto allocated = timelining::curve(t.allocations, trace.size(), [](const Allocation& a) { return a.given_up; });
  const auto peak = std::max_element(t.active.begin(), t.active.end());
  t.peak = Bytes(*peak);
  t.peak_at = static_cast<std::size_t>(peak - t.active.begin());
  t.peak_allocated = Bytes(*std::max_element(allocated.begin(), allocated.end()));
  t.peak_reserved = Bytes(*std::max_element(t.reserved.begin(), t.reserved.end()));
  return t;
}

}  // namespace vlmest::diagnose
