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
/// lowest mapped page of its stream and pool, or at the entry of `bases` that lies below it within a range's length.
/// Throws Error where blocks do not fill their segment.
inline std::vector<Block> restore(Heap& h, std::span<const Segment> segments, std::span<const std::int64_t> bases) {
  std::vector<Block> active;
  std::vector<std::int32_t> tails;  // by range: its last block so far
  for (const auto& s : segments) {
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
        for (const auto b : bases)
          if (b < base && b > s.address - length && (s.address - b) % page == 0) base = b;
        range = static_cast<std::int16_t>(h.ranges.size());
        h.ranges.push_back({base, length, page});
        tails.push_back(none);
      }
      const auto r = static_cast<std::size_t>(range);
      before = tails[r];
      const auto end = before == none ? h.ranges[r].base : h.at(before).address + h.at(before).size;
      if (end < s.address) insert_unmapped(h, append(end, s.address - end, 0, BlockState::unmapped));
    }
    auto end = s.address;
    for (const auto& b : s.blocks) {
      if (b.address != end) break;
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
    if (end != s.address + s.size.value() || s.blocks.empty())
      throw Error("segment at " + std::to_string(s.address),
                  "its blocks do not fill its " + std::to_string(s.size.value()) + " bytes",
                  "give every block of a segment, in order of address");
    h.reserve(s.size.value());
    if (s.expandable) tails[static_cast<std::size_t>(range)] = before;
  }
  for (std::size_t r = 0; r < tails.size(); ++r) {
    const auto last = tails[r];
    const auto end = h.at(last).address + h.at(last).size, top = h.ranges[r].base + h.ranges[r].size;
    if (end < top) insert_unmapped(h, splice(h, last, true, end, top - end, BlockState::unmapped));
  }
  for (std::size_t i = 0; i < h.blocks.size(); ++i)
    if (h.blocks[i].state == BlockState::cached) h.cache(static_cast<std::int32_t>(i));
  h.peak_allocated = h.allocated;
  h.peak_requested = h.requested;
  return active;
}

}  // namespace vlmest::allocator
