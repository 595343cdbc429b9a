// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/evidence/snapshot/fragmentation.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace fragments {

VLMEST_INLINE void take(Extents& extents, std::uint64_t address, std::int64_t size) {
  const auto end = address + static_cast<std::uint64_t>(size);
  auto i = extents.upper_bound(address);
  if (i != extents.begin()) --i;
  while (i != extents.end() && i->first < end) {
    const auto [from, e] = *i;
    const auto to = from + static_cast<std::uint64_t>(e.size);
    if (to <= address) {
      ++i;
      continue;
    }
    i = extents.erase(i);
    if (from < address) {
      auto left = e;
      left.size = static_cast<std::int64_t>(address - from);
      extents[from] = left;
    }
    if (to > end) {
      auto right = e;
      right.size = static_cast<std::int64_t>(to - end);
      extents[end] = right;
    }
  }
}

VLMEST_INLINE Extents extents_at(const RecordedSnapshot& s, std::int64_t device, std::span<const TraceEntry> trace,
                                 std::size_t at) {
  using allocator::TraceAction;
  Extents out;
  for (const auto& g : s.segments)
    if (g.device == device)
      out[g.address] = {g.size.value(), g.stream, g.pool == allocator::Pool::small, g.pool_id != PoolId{},
                        g.expandable};
  for (std::size_t i = trace.size(); i-- > at;) {
    const auto& e = trace[i];
    if (e.action == TraceAction::segment_alloc || e.action == TraceAction::segment_map)
      take(out, e.address, e.size.value());
    if (e.action == TraceAction::segment_free || e.action == TraceAction::segment_unmap)
      // Its pool is not recorded: a segment of the small pool has 2 MiB, and so has a page of it.
      out[e.address] = {e.size.value(), e.stream, e.size.value() == allocator::small_segment_size, false,
                        e.action == TraceAction::segment_unmap};
  }
  return out;
}

}  // namespace fragments

VLMEST_INLINE ReservedMemory reserved_memory(const RecordedSnapshot& s, std::int64_t device,
                                             std::span<const TraceEntry> trace, const SnapshotTimeline& t,
                                             std::size_t at, const std::optional<OomRequest>& request) {
  const auto extents = fragments::extents_at(s, device, trace, at);
  std::vector<std::pair<std::uint64_t, std::int64_t>> active;  // address and size
  for (const auto& a : t.allocations)
    if (a.active_at(at)) active.emplace_back(a.address, a.size.value());
  std::sort(active.begin(), active.end());

  ReservedMemory r;
  const bool small = request && request->size <= Bytes(allocator::small_size);
  std::size_t next = 0;
  for (auto i = extents.begin(); i != extents.end();) {
    const auto begin = i->first;
    const auto e = i->second;
    auto end = begin + static_cast<std::uint64_t>(e.size);
    ++i;
    // Stretches of an expandable segment that touch are one.
    while (e.expandable && i != extents.end() && i->first == end && i->second.expandable &&
           i->second.stream == e.stream && i->second.small == e.small) {
      end += static_cast<std::uint64_t>(i->second.size);
      ++i;
    }
    const auto size = Bytes(static_cast<std::int64_t>(end - begin));
    r.reserved += size;
    if (e.is_private) r.private_pools += size;
    while (next < active.size() && active[next].first < begin) ++next;
    auto free_from = begin;
    bool whole = true;
    const auto piece = [&](std::uint64_t to, bool all) {
      if (to <= free_from) return;
      const auto n = Bytes(static_cast<std::int64_t>(to - free_from));
      (all ? r.whole : r.split) += n;
      r.largest_free = std::max(r.largest_free, n);
      if (!request || e.is_private || e.stream != request->stream || e.small != small) return;
      r.usable += n;
      r.largest_usable = std::max(r.largest_usable, n);
      ++r.pieces;
    };
    for (; next < active.size() && active[next].first < end; ++next) {
      whole = false;
      piece(active[next].first, false);
      const auto to = std::min(end, active[next].first + static_cast<std::uint64_t>(active[next].second));
      free_from = std::max(free_from, to);
    }
    piece(end, whole);
  }
  r.active = r.reserved - r.whole - r.split;
  if (request) {
    r.in_pieces = r.usable >= request->size && r.largest_usable < request->size;
    r.in_pieces_with_device = r.usable + request->device_free >= request->size && r.largest_usable < request->size;
    const auto lacks = request->size - r.usable - request->device_free;
    r.missing = std::max(Bytes(), lacks);
  }
  return r;
}

}  // namespace vlmest::diagnose
