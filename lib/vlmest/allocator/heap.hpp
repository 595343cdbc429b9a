// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <vlmest/allocator/block.hpp>
#include <vlmest/allocator/config.hpp>
#include <vlmest/allocator/free_list.hpp>
#include <vlmest/allocator/segment.hpp>

namespace vlmest::allocator {

/// Address space of one expandable segment (ExpandableSegment in c10/cuda/CUDACachingAllocator.cpp).
struct AddressRange {
  std::int64_t base = 0, size = 0;
  std::int64_t page = 0;  ///< memory is mapped in multiples of it: 2 MiB for the small pool, 20 MiB for the large one
};

/// What DeviceCachingAllocator in c10/cuda/CUDACachingAllocator.cpp knows: all blocks, the cached ones of every stream
/// and pool by size, the unmapped ones by address, and the statistics. Pools are numbered 2 * stream + Pool.
struct Heap {
  AllocatorConfig config;
  std::vector<BlockRecord> blocks;
  std::vector<FreeList> cached;                     ///< by pool
  std::vector<std::vector<std::int32_t>> unmapped;  ///< by pool, in order of address
  std::vector<Stream> streams;
  std::vector<AddressRange> ranges;
  std::vector<std::int32_t> awaiting;  ///< in the order in which they were given up
  std::int64_t allocated = 0, active = 0, requested = 0, reserved = 0;
  std::int64_t releasable = 0;  ///< what empty_cache() would give back
  std::int64_t growths = 0;     ///< how often no cached block fitted
  std::int64_t peak_allocated = 0, peak_requested = 0, peak_reserved = 0;
  // should_split, by Pool: what must be left over, and the requests that split at all.
  std::array<std::int64_t, 2> least_rest{min_block_size, small_size + 1}, split_below{no_limit, no_limit};
  // Ages of cached blocks, for garbage collection only (get_free_blocks_call_count, gc_count_base).
  bool collects = false;
  /// The search for a block asks for more than its size: ages are counted, or oversize blocks are kept for oversize
  /// requests, or blocks lie in address ranges.
  bool picky = false;
  std::array<std::int64_t, 2> searches{};  ///< of the small and of the large pools
  std::vector<std::int64_t> since;         ///< by block: that count when it was cached
  std::int32_t spare = none;

  Heap() : Heap(AllocatorConfig{}) {}
  explicit Heap(const AllocatorConfig& c) : config(c), collects(collection_limit(c) != no_limit) {
    check(config);
    picky = collects || c.expandable_segments || c.max_split_size.value() != no_limit;
    if (c.expandable_segments) least_rest[1] = min_block_size;
    if (!c.expandable_segments) split_below[1] = c.max_split_size.value();
    pool_of(0, Pool::small);
  }

  BlockRecord& at(std::int32_t i) { return blocks[static_cast<std::size_t>(i)]; }
  const BlockRecord& at(std::int32_t i) const { return blocks[static_cast<std::size_t>(i)]; }

  std::uint16_t pool_of(Stream stream, Pool kind) {
    std::size_t s = 0;
    while (s < streams.size() && streams[s] != stream) ++s;
    if (s == streams.size()) {
      if (s >= 4096) throw Error("allocator", "more than 4096 streams", "check the stream of each event");
      streams.push_back(stream);
      cached.resize(2 * s + 2);
      unmapped.resize(2 * s + 2);
    }
    return static_cast<std::uint16_t>(2 * s + static_cast<std::size_t>(kind));
  }
  /// Pools of one kind in the order of torch's sets: by the handle of their stream, as an unsigned number.
  std::vector<std::uint16_t> pools(Pool kind) const {
    std::vector<std::uint16_t> r;
    for (std::size_t s = 0; s < streams.size(); ++s) r.push_back(static_cast<std::uint16_t>(2 * s + std::size_t(kind)));
    std::sort(r.begin(), r.end(), [&](auto a, auto b) {
      return static_cast<std::uint64_t>(streams[a / 2u]) < static_cast<std::uint64_t>(streams[b / 2u]);
    });
    return r;
  }

  std::int32_t new_record() {
    if (spare == none) return added_record();
    const auto i = spare;
    spare = at(i).free_next;
    return i;
  }
  /// Apart from new_record, which is then short enough to be inlined where blocks are split.
  std::int32_t added_record() {
    blocks.emplace_back();
    if (collects) since.push_back(0);
    return static_cast<std::int32_t>(blocks.size() - 1);
  }
  void retire(std::int32_t i) {
    at(i).state = BlockState::spare;
    at(i).free_next = spare;
    spare = i;
  }

  /// Of a cached block, the bytes that could be given back at once.
  std::int64_t releasable_of(const BlockRecord& b) const {
    if (b.range != none) [[unlikely]]
      return pages_of(b);
    return b.alone() ? b.size : 0;
  }
  /// The whole pages of a block that lies in an address range.
  std::int64_t pages_of(const BlockRecord& b) const {
    const auto& r = ranges[static_cast<std::size_t>(b.range)];
    const auto first = (b.address - r.base + r.page - 1) / r.page, last = (b.address + b.size - r.base) / r.page;
    return last > first ? (last - first) * r.page : 0;
  }

  /// Puts a block that has its place in the chain among the cached ones.
  void cache(std::int32_t i) {
    auto& b = at(i);
    b.state = BlockState::cached;
    cached[b.pool].insert(blocks.data(), i);
    releasable += releasable_of(b);
    touch(i);
  }
  /// Takes a cached block out, whatever becomes of it.
  void uncache(std::int32_t i) {
    releasable -= releasable_of(at(i));
    cached[at(i).pool].erase(blocks.data(), i);
  }
  void touch(std::int32_t i) {
    if (collects) [[unlikely]]
      since[static_cast<std::size_t>(i)] = searches[at(i).pool & 1u];
  }

  /// free_block: an active block joins its cached neighbours.
  void complete_free(std::int32_t i) {
    BlockRecord* const all = blocks.data();
    BlockRecord& freed = all[i];
    auto& list = cached[freed.pool];
    active -= freed.size;
    requested -= freed.requested;
    const auto prev = freed.prev, next = freed.next;
    const bool joins_prev = prev != none && all[prev].state == BlockState::cached;
    const bool joins_next = next != none && all[next].state == BlockState::cached;
    if (freed.range != none) [[unlikely]] {  // others are split, and not releasable
      if (joins_prev) releasable -= releasable_of(all[prev]);
      if (joins_next) releasable -= releasable_of(all[next]);
    }
    auto kept = i;
    if (joins_prev) {
      auto size = all[prev].size + freed.size;
      auto behind = next;
      if (joins_next) {
        size += all[next].size;
        behind = all[next].next;
        list.erase(all, next);
        retire(next);
      }
      all[prev].next = behind;
      if (behind != none) all[behind].prev = prev;
      list.resize(all, prev, all[prev].address, size);
      retire(i);
      kept = prev;
    } else if (joins_next) {
      all[next].prev = prev;
      if (prev != none) all[prev].next = next;
      list.resize(all, next, freed.address, freed.size + all[next].size);
      retire(i);
      kept = next;
    } else {
      freed.state = BlockState::cached;
      list.insert(all, i);
    }
    all[kept].requested = freed.requested;
    releasable += releasable_of(all[kept]);
    touch(kept);
  }

  bool splits(const BlockRecord& b, std::int64_t size) const {
    const auto kind = b.pool & 1u;
    return b.size - size >= least_rest[kind] && size < split_below[kind];
  }
  /// The first `size` bytes of a cached block, or all of it, as an allocated one (alloc_found_block).
  std::int32_t allocate(std::int32_t i, std::int64_t size, bool split) {
    const auto front = split ? new_record() : i;
    BlockRecord* const all = blocks.data();
    BlockRecord& rest = all[i];
    auto& list = cached[rest.pool];
    releasable -= releasable_of(rest);
    if (!split) {
      list.erase(all, i);
      rest.state = BlockState::allocated;
      return i;
    }
    BlockRecord& block = all[front];
    block.address = rest.address;
    block.size = size;
    block.prev = rest.prev;
    block.next = i;
    block.pool = rest.pool;
    block.range = rest.range;
    block.state = BlockState::allocated;
    if (rest.prev != none) all[rest.prev].next = front;
    rest.prev = front;
    list.resize(all, i, rest.address + size, rest.size - size);
    if (rest.range != none) [[unlikely]]  // others are split, and not releasable
      releasable += releasable_of(rest);
    touch(i);
    return front;
  }

  /// Forgets everything but the settings; keeps the memory of its arrays.
  void clear() {
    blocks.clear();
    for (auto& list : cached) list.clear();
    for (auto& list : unmapped) list.clear();
    ranges.clear();
    awaiting.clear();
    since.clear();
    searches = {};
    spare = none;
    growths = allocated = active = requested = reserved = releasable = peak_allocated = peak_requested = peak_reserved =
        0;
  }

  void reserve(std::int64_t bytes) { peak_reserved = std::max(peak_reserved, reserved += bytes); }
};

}  // namespace vlmest::allocator
