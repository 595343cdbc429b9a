// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vlmest/allocator/expandable.hpp>
#include <vlmest/allocator/heap.hpp>

namespace vlmest::allocator {

/// Every segment in order of address, as snapshot() in c10/cuda/CUDACachingAllocator.cpp lists them: an expandable one
/// once for each stretch of mapped pages.
inline std::vector<Segment> snapshot(const Heap& h) {
  std::vector<Segment> out;
  const auto unmapped = [&](std::int32_t i) { return h.at(i).state == BlockState::unmapped; };
  for (const auto& head : h.blocks) {
    if (head.state == BlockState::spare || head.state == BlockState::unmapped) continue;
    if (head.prev != none && !unmapped(head.prev)) continue;
    Segment s{head.address, Bytes(), pool_kind(head.pool), h.streams[head.pool / 2u], head.range != none, {}};
    for (const auto* b = &head;; b = &h.at(b->next)) {
      s.size += Bytes(b->size);
      s.blocks.push_back({b->address, Bytes(b->size), Bytes(b->requested), b->state});
      if (b->next == none || unmapped(b->next)) break;
    }
    out.push_back(std::move(s));
  }
  std::sort(out.begin(), out.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
  return out;
}

/// Puts recorded segments, in order of address, into an empty heap; a handle for each active block in order of address.
/// A snapshot does not tell where the address range of an expandable segment begins: a range is taken to begin at the
/// lowest mapped page of its stream and pool, or at one of `bases` that lies below it within a range's length. Throws
/// Error where blocks do not fill their segment.
inline std::vector<Block> restore(Heap& h, std::span<const Segment> segments, std::span<const RangeBase> bases,
                                  std::int64_t unmapped_requested) {
  std::vector<Block> active;
  std::vector<std::int32_t> tails;  // by range: its last block so far
  std::int64_t above = 0;           // the end of the segment before
  for (const auto& s : segments) {
    const auto where = "segment at " + std::to_string(s.address);
    if (s.address < above) throw Error(where, "begins inside another one", "give segments in order of address");
    above = checked_add(s.address, s.size.value());
    const auto pool = h.pool_of(s.stream, s.pool);
    auto before = none;
    std::int16_t range = none;
    const auto append = [&](std::int64_t address, std::int64_t size, std::int64_t requested, BlockState state) {
      const auto i = h.new_record();
      h.at(i) = {address, size, requested, before, none, none, none, 0, pool, range, state};
      if (before != none) h.at(before).next = i;
      return before = i;
    };
    if (s.expandable) {
      const auto page = s.pool == Pool::small ? small_segment_size : h.config.large_segment_size.value();
      for (std::size_t r = 0; r < h.ranges.size(); ++r)
        if (h.at(tails[r]).pool == pool && s.address < h.ranges[r].base + h.ranges[r].size)
          range = static_cast<std::int16_t>(r);
      if (range == none) {
        const auto length = address_range(h.config, page);
        auto base = s.address;
        for (const auto& b : bases)
          if (b.stream == s.stream && b.pool == s.pool && b.address < base && b.address > s.address - length)
            base = b.address;
        range = new_range(h, {base, length, page});
        tails.push_back(none);
      }
      const auto r = static_cast<std::size_t>(range);
      before = tails[r];
      const auto end = before == none ? h.ranges[r].base : h.at(before).address + h.at(before).size;
      if (end < s.address) insert_unmapped(h, append(end, s.address - end, unmapped_requested, BlockState::unmapped));
    }
    auto end = s.address;
    for (const auto& b : s.blocks) {
      if (b.address != end || b.size <= Bytes()) break;
      const auto i = append(b.address, b.size.value(), b.requested.value(), b.state);
      end += b.size.value();
      if (!b.active()) continue;
      h.active += b.size.value();
      h.requested += b.requested.value();
      if (b.allocated())
        h.allocated += b.size.value();
      else
        h.awaiting.push_back(i);
      active.push_back({i});
    }
    if (end != above || s.blocks.empty())
      throw Error(where, "its blocks do not fill its " + std::to_string(s.size.value()) + " bytes",
                  "give every block of a segment, in order of address");
    checked_add(h.reserved, s.size.value());
    h.reserve(s.size.value());
    if (!s.expandable) continue;
    tails[static_cast<std::size_t>(range)] = before;
    const auto& r = h.ranges[static_cast<std::size_t>(range)];
    if (above > r.base + r.size)
      throw Error(where, "is longer than 9/8 of the device's memory", "give the device's total_memory");
  }
  for (std::size_t r = 0; r < tails.size(); ++r) {
    const auto last = tails[r];
    const auto end = h.at(last).address + h.at(last).size, top = h.ranges[r].base + h.ranges[r].size;
    if (end == top) continue;
    const auto hole = splice(h, last, true, end, top - end, BlockState::unmapped);
    h.at(hole).requested = unmapped_requested;
    insert_unmapped(h, hole);
  }
  for (std::size_t i = 0; i < h.blocks.size(); ++i)
    if (h.blocks[i].state == BlockState::cached) h.cache(static_cast<std::int32_t>(i));
  h.peak_allocated = h.allocated;
  h.peak_requested = h.requested;
  return active;
}

}  // namespace vlmest::allocator
