// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/snapshot/timeline.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace timelining {

VLMEST_INLINE std::vector<Allocation> lifetimes(std::span<const TraceEntry> trace,
                                                const allocator::AllocatorConfig& config, Open& open) {
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

VLMEST_INLINE void take_blocks(SnapshotTimeline& t, Open& open, const RecordedSnapshot& s, std::int64_t device) {
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

VLMEST_INLINE std::vector<std::int64_t> reserved(const RecordedSnapshot& s, std::int64_t device,
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

VLMEST_INLINE SnapshotTimeline timeline(const RecordedSnapshot& s, std::int64_t device,
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
