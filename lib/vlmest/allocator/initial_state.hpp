// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <vlmest/allocator/replay.hpp>
#include <vlmest/allocator/undo.hpp>

/// The state that a history begins in, where recording began late or the oldest events were dropped.
namespace vlmest::allocator {

namespace undoing {

/// Bytes beyond the request that blocks kept unsplit, by address, where nothing tells but the choices that they
/// explain.
using Kept = std::map<std::int64_t, std::int64_t>;

/// Bytes of an active block whose request alone is known, with `gap` bytes up to the next active block or the end of
/// its segment. In the large pool up to 1 MiB may have been left unsplit: all of the gap where it is that small; else
/// what lies between the request and the place where the history puts the first block into the gap; else as far as
/// known.
inline std::int64_t size_of(const MemorySnapshot& m, const Extent& e, std::int64_t address, const Active& b,
                            std::int64_t gap, const Kept& kept) {
  const auto size = round_size(m.config, b.requested);
  const auto rest = gap - size;
  if (rest < 0)
    throw Error("block at " + std::to_string(address),
                "its " + std::to_string(size) + " bytes do not fit before the next", "check the settings");
  if (e.pool == Pool::small || e.expandable || rest == 0) return size;
  if (size >= m.config.max_split_size.value() || rest <= small_size) return gap;
  for (std::size_t i = 0; i < std::min(b.freed, m.events.size()); ++i) {
    const auto& a = m.events[i];
    if (a.action != TraceAction::alloc || a.address < address + size || a.address >= address + gap) continue;
    return a.address - address <= size + small_size ? a.address - address : size;
  }
  const auto known = kept.find(address);
  return known == kept.end() ? size : size + known->second;
}

}  // namespace undoing

/// What the snapshot's events began with. A cached block there has a negative request: -2, -3, ... in order of address,
/// for what its last owner had asked for is not recorded; -1 stands for address space that had been unmapped.
inline InitialState initial_state(const MemorySnapshot& m, const undoing::Kept& kept = {}) {
  using namespace undoing;
  InitialState r;
  const auto active = active_before(m);
  std::int64_t unknown = -1;
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
      const auto size = b->second.size != 0 ? b->second.size : size_of(m, e, b->first, b->second, gap, kept);
      s.blocks.push_back({b->first, Bytes(size), Bytes(b->second.requested), b->second.state});
      at = b->first + size;
    }
    cached(at, end);
    r.segments.push_back(std::move(s));
  }
  if (b != active.end())
    throw Error("block at " + std::to_string(b->first), "lies in no segment", "give all segments of the snapshot");
  r.bases = mapped_later(m);
  r.unmapped_requested = Bytes(-1);
  return r;
}

}  // namespace vlmest::allocator
