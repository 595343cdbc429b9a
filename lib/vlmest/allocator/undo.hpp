// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <vlmest/allocator/memory_snapshot.hpp>

/// Undoing a history: which segments, pages and blocks there were before its first event, given those at its end.
namespace vlmest::allocator::undoing {

/// A cudaMalloc segment or a stretch of mapped pages.
struct Extent {
  std::int64_t size = 0;
  Stream stream = 0;
  Pool pool = Pool::small;
  bool expandable = false;
};
using Extents = std::map<std::int64_t, Extent>;  ///< by address

/// A block that was active before the first event.
struct Active {
  std::int64_t size = 0;  ///< 0 where only the request is known
  std::int64_t requested = 0;
  BlockState state = BlockState::allocated;
  std::size_t freed = SIZE_MAX;  ///< the event that frees it
};
using Blocks = std::map<std::int64_t, Active>;  ///< by address

[[noreturn]] inline void disagree(std::size_t event, const TraceEvent& e) {
  throw Error("event " + std::to_string(event),
              "a " + std::string(name(e.action)) + " of " + std::to_string(e.size.value()) + " bytes at " +
                  std::to_string(e.address) + " does not lead to the segments",
              "give the events and the segments of one snapshot");
}

/// Takes the stretch [address, address + size) away, wherever it was put together from.
inline void cut(Extents& extents, std::int64_t address, std::int64_t size, std::size_t event, const TraceEvent& e) {
  const auto end = address + size;
  for (auto at = address; at < end;) {
    auto i = extents.upper_bound(at);
    if (i == extents.begin()) disagree(event, e);
    const auto start = (--i)->first;
    const auto whole = i->second;
    if (start + whole.size <= at) disagree(event, e);
    extents.erase(i);
    auto part = whole;
    if (part.size = at - start; part.size > 0) extents[start] = part;
    at = std::min(end, start + whole.size);
    if (part.size = start + whole.size - at; part.size > 0) extents[at] = part;
  }
}

/// Puts pages back; they join mapped neighbours of the same stream and pool.
inline void join(Extents& extents, std::int64_t address, Extent e) {
  const auto same = [&](const Extent& o) { return o.expandable && o.stream == e.stream && o.pool == e.pool; };
  auto next = extents.lower_bound(address);
  if (next != extents.end() && next->first == address + e.size && same(next->second)) {
    e.size += next->second.size;
    next = extents.erase(next);
  }
  const bool follows = next != extents.begin() && std::prev(next)->first + std::prev(next)->second.size == address;
  if (follows && same(std::prev(next)->second))
    std::prev(next)->second.size += e.size;
  else
    extents[address] = e;
}

/// Pages are mapped for the allocation that follows, and lie in its pool.
inline std::vector<RangeBase> mapped_later(const MemorySnapshot& m) {
  std::vector<RangeBase> r;
  std::size_t of_call = 0;
  for (const auto& e : m.events) {
    if (e.action == TraceAction::segment_map) r.push_back({e.address, e.stream, Pool::small});
    if (e.action != TraceAction::alloc && e.action != TraceAction::oom) continue;
    const auto pool = round_size(m.config, e.size.value()) <= small_size ? Pool::small : Pool::large;
    for (; of_call < r.size(); ++of_call) r[of_call].pool = pool;
  }
  return r;
}

/// The pool of pages that were unmapped: that of a block in them, of mapped pages that they touch, or of the nearest
/// pages of the stream that are known, for address ranges are long.
inline Pool pool_of_pages(const MemorySnapshot& m, const TraceEvent& e, std::span<const RangeBase> later,
                          const Blocks& active, const Extents& extents) {
  const auto end = e.address + e.size.value();
  if (e.size.value() % m.config.large_segment_size.value() != 0) return Pool::small;
  if (const auto b = active.lower_bound(e.address); b != active.end() && b->first < end)
    return round_size(m.config, b->second.requested) <= small_size ? Pool::small : Pool::large;
  const auto next = extents.lower_bound(e.address);
  const auto mine = [&](const Extent& x) { return x.expandable && x.stream == e.stream; };
  if (next != extents.end() && next->first == end && mine(next->second)) return next->second.pool;
  if (next != extents.begin())
    if (const auto prev = std::prev(next); prev->first + prev->second.size == e.address && mine(prev->second))
      return prev->second.pool;
  std::int64_t nearest = no_limit;
  auto pool = Pool::large;
  const auto consider = [&](std::int64_t address, Stream stream, Pool p) {
    const auto distance = address < e.address ? e.address - address : address - e.address;
    if (stream != e.stream || distance >= nearest) return;
    nearest = distance;
    pool = p;
  };
  for (const auto& s : m.segments)
    if (s.expandable) consider(s.address, s.stream, s.pool);
  for (const auto& p : later) consider(p.address, p.stream, p.pool);
  return pool;
}

/// Segments and pages as they were before the first event.
inline Extents extents_before(const MemorySnapshot& m, const Blocks& active) {
  Extents r;
  for (const auto& s : m.segments) r[s.address] = {s.size.value(), s.stream, s.pool, s.expandable};
  const auto later = mapped_later(m);
  for (auto i = m.events.size(); i-- > 0;) {
    const auto& e = m.events[i];
    const auto size = e.size.value();
    if (e.action == TraceAction::segment_alloc) {
      const auto s = r.find(e.address);
      if (s == r.end() || s->second.size != size) disagree(i, e);
      r.erase(s);
    } else if (e.action == TraceAction::segment_free) {
      r[e.address] = {size, e.stream, size == small_segment_size ? Pool::small : Pool::large, false};
    } else if (e.action == TraceAction::segment_map) {
      cut(r, e.address, size, i, e);
    } else if (e.action == TraceAction::segment_unmap) {
      join(r, e.address, {size, e.stream, pool_of_pages(m, e, later, active, r), true});
    }
  }
  return r;
}

/// Blocks that the history frees without having allocated them, and those that it never touches.
inline Blocks active_before(const MemorySnapshot& m) {
  Blocks r;
  std::set<std::int64_t> made;      // by the history, and still active
  std::set<std::int64_t> given_up;  // older blocks that the history frees, until that is complete
  for (std::size_t i = 0; i < m.events.size(); ++i) {
    const auto& e = m.events[i];
    if (e.action == TraceAction::alloc) made.insert(e.address);
    if (e.action == TraceAction::free_requested && made.find(e.address) == made.end()) {
      r[e.address] = {0, e.size.value(), BlockState::allocated, i};
      given_up.insert(e.address);
    }
    if (e.action == TraceAction::free_completed && made.erase(e.address) == 0) {
      if (given_up.erase(e.address) == 0) r[e.address] = {0, e.size.value(), BlockState::awaiting, i};
      r[e.address].freed = i;
    }
  }
  for (const auto& s : m.segments)
    for (const auto& b : s.blocks) {
      if (!b.active() || made.find(b.address) != made.end()) continue;
      if (given_up.find(b.address) != given_up.end())
        r[b.address].size = b.size.value();
      else
        r[b.address] = {b.size.value(), b.requested.value(), b.state, SIZE_MAX};
    }
  return r;
}

}  // namespace vlmest::allocator::undoing
