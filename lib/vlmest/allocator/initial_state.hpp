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
#include <vlmest/allocator/replay.hpp>

/// The state that a history begins in, where recording began late or the oldest events were dropped: found by undoing
/// the events from the segments at their end.
namespace vlmest::allocator {

namespace undoing {

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

/// Takes the stretch [address, address + size) away.
inline void cut(Extents& extents, std::int64_t address, std::int64_t size, std::size_t event, const TraceEvent& e) {
  auto i = extents.upper_bound(address);
  if (i == extents.begin()) disagree(event, e);
  const auto [start, whole] = *--i;
  if (start + whole.size < address + size) disagree(event, e);
  extents.erase(i);
  auto part = whole;
  if (part.size = address - start; part.size > 0) extents[start] = part;
  if (part.size = start + whole.size - address - size; part.size > 0) extents[address + size] = part;
}

/// Puts pages back; they join mapped neighbours of the same stream and pool.
inline void join(Extents& extents, std::int64_t address, Extent e, bool known) {
  auto next = extents.lower_bound(address);
  const auto same = [&](const Extent& o) {
    return o.expandable && o.stream == e.stream && (!known || o.pool == e.pool);
  };
  if (next != extents.end() && next->first == address + e.size && same(next->second)) {
    e.pool = next->second.pool;
    e.size += next->second.size;
    next = extents.erase(next);
  }
  if (next != extents.begin())
    if (const auto prev = std::prev(next); prev->first + prev->second.size == address && same(prev->second)) {
      prev->second.size += e.size;
      return;
    }
  extents[address] = e;
}

/// Segments and pages as they were before the first event.
inline Extents extents_before(const MemorySnapshot& m, const Blocks& active) {
  Extents r;
  for (const auto& s : m.segments) r[s.address] = {s.size.value(), s.stream, s.pool, s.expandable};
  const auto page = m.config.large_segment_size.value();
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
      // Whose pages they were shows in their number or in a block that lay in them.
      auto pool = size % page == 0 ? Pool::large : Pool::small;
      const auto b = active.lower_bound(e.address);
      const bool seen = b != active.end() && b->first < e.address + size;
      if (seen && round_size(m.config, b->second.requested) <= small_size) pool = Pool::small;
      join(r, e.address, {size, e.stream, pool, true}, seen || pool == Pool::small);
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

/// Bytes of an active block whose request alone is known, with `gap` bytes up to the next active block or the end of
/// its segment. In the large pool up to 1 MiB may have been left unsplit: all of the gap where it is that small; else
/// what lies between the request and the place where the history puts the first block into the gap.
inline std::int64_t size_of(const MemorySnapshot& m, const Extent& e, std::int64_t address, const Active& b,
                            std::int64_t gap) {
  const auto size = round_size(m.config, b.requested);
  const auto rest = gap - size;
  if (rest < 0)
    throw Error("block at " + std::to_string(address),
                "its " + std::to_string(size) + " bytes do not fit before the next", "check the settings");
  if (e.pool == Pool::small || e.expandable || rest == 0) return size;
  if (size >= m.config.max_split_size.value() || rest <= small_size) return gap;
  for (std::size_t i = 0; i < std::min(b.freed, m.events.size()); ++i)
    if (const auto& a = m.events[i];
        a.action == TraceAction::alloc && a.address >= address + size && a.address < address + gap)
      return a.address - address <= size + small_size ? a.address - address : size;
  return size;
}

}  // namespace undoing

/// What the snapshot's events began with. A cached block there has a negative request: -1, -2, ... in order of address,
/// for what its last owner had asked for is not recorded.
inline InitialState initial_state(const MemorySnapshot& m) {
  using namespace undoing;
  InitialState r;
  const auto active = active_before(m);
  std::int64_t unknown = 0;
  auto b = active.begin();
  for (const auto& [start, e] : extents_before(m, active)) {
    const auto end = start + e.size;
    Segment s{start, Bytes(e.size), e.pool, e.stream, e.expandable, {}};
    const auto cached = [&](std::int64_t from, std::int64_t to) {
      if (from < to) s.blocks.push_back({from, Bytes(to - from), Bytes(--unknown), BlockState::cached});
    };
    if (b != active.end() && b->first < start)
      throw Error("block at " + std::to_string(b->first), "lies in no segment", "give all segments of the snapshot");
    auto at = start;
    for (; b != active.end() && b->first < end; ++b) {
      cached(at, b->first);
      const auto next = std::next(b);
      const auto gap = (next != active.end() && next->first < end ? next->first : end) - b->first;
      const auto size = b->second.size != 0 ? b->second.size : size_of(m, e, b->first, b->second, gap);
      s.blocks.push_back({b->first, Bytes(size), Bytes(b->second.requested), b->second.state});
      at = b->first + size;
    }
    cached(at, end);
    r.segments.push_back(std::move(s));
  }
  if (b != active.end())
    throw Error("block at " + std::to_string(b->first), "lies in no segment", "give all segments of the snapshot");
  for (const auto& e : m.events)
    if (e.action == TraceAction::segment_map) r.bases.push_back(e.address);
  return r;
}

/// A snapshot beside its replay.
struct Reproduction {
  InitialState initial;
  Replay replay;
  bool exact = false;      ///< all segments and blocks are the snapshot's
  std::string difference;  ///< the first one, else empty
};

inline std::string difference(std::span<const Segment> expected, std::span<const Segment> actual) {
  for (std::size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
    if (i >= actual.size()) return "segment at " + std::to_string(expected[i].address) + " is missing";
    if (i >= expected.size()) return "segment at " + std::to_string(actual[i].address) + " is not in the snapshot";
    const auto &e = expected[i], &a = actual[i];
    const auto where = "segment at " + std::to_string(e.address) + ": ";
    if (a.address != e.address) return where + "lies at " + std::to_string(a.address);
    if (a.size != e.size)
      return where + std::to_string(a.size.value()) + " bytes, not " + std::to_string(e.size.value());
    if (a.pool != e.pool || a.stream != e.stream || a.expandable != e.expandable) return where + "of another pool";
    for (std::size_t k = 0; k < std::max(e.blocks.size(), a.blocks.size()); ++k) {
      if (k >= e.blocks.size() || k >= a.blocks.size()) return where + "another number of blocks";
      if (a.blocks[k] != e.blocks[k])
        return where + "block " + std::to_string(k) + " of " + std::to_string(a.blocks[k].size.value()) +
               " bytes for " + std::to_string(a.blocks[k].requested.value()) + ", not " +
               std::to_string(e.blocks[k].size.value()) + " for " + std::to_string(e.blocks[k].requested.value());
    }
  }
  return {};
}

/// Replays a snapshot's events from the state that they began in and compares what comes out with its segments. Throws
/// Error where the events contradict torch's rules or the segments. Requests of blocks that were cached before the
/// first event and never used again are taken from the snapshot.
inline Reproduction reproduce(const MemorySnapshot& m) {
  Reproduction r;
  r.initial = initial_state(m);
  r.replay = replay(m.events, m.config, r.initial);
  std::map<std::int64_t, Segment::Piece> known;
  for (const auto& s : m.segments)
    for (const auto& b : s.blocks) known[b.address] = b;
  for (auto& s : r.replay.segments)
    for (auto& b : s.blocks)
      if (b.requested < Bytes() && known.find(b.address) != known.end()) b.requested = known[b.address].requested;
  r.difference = difference(m.segments, r.replay.segments);
  r.exact = r.difference.empty();
  return r;
}

}  // namespace vlmest::allocator
