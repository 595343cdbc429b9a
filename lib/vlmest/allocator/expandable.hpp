// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <vlmest/allocator/heap.hpp>

/// Expandable segments: one address range per stream and pool, in which pages of memory are mapped where they are
/// needed and unmapped when they are given back. Source: ExpandableSegment, find_expandable_block, map_block,
/// try_allocate_expandable_block, unmap_block and release_expandable_segment in c10/cuda/CUDACachingAllocator.cpp.
namespace vlmest::allocator {

inline void insert_unmapped(Heap& h, std::int32_t i) {
  auto& list = h.unmapped[h.at(i).pool];
  list.insert(
      std::lower_bound(list.begin(), list.end(), i, [&](auto a, auto b) { return h.at(a).address < h.at(b).address; }),
      i);
}
inline void erase_unmapped(Heap& h, std::int32_t i) {
  auto& list = h.unmapped[h.at(i).pool];
  list.erase(std::find(list.begin(), list.end(), i));
}

/// Joins a block that is in no list with its neighbours of the same state (try_merge_blocks).
inline void merge_neighbours(Heap& h, std::int32_t i) {
  for (const bool before : {true, false}) {
    const auto other = before ? h.at(i).prev : h.at(i).next;
    if (other == none || h.at(other).state != h.at(i).state) continue;
    if (h.at(i).state == BlockState::cached)
      h.uncache(other);
    else
      erase_unmapped(h, other);
    auto& block = h.at(i);
    const auto& gone = h.at(other);
    block.size += gone.size;
    if (before) {
      block.address = gone.address;
      block.prev = gone.prev;
      if (block.prev != none) h.at(block.prev).next = i;
    } else {
      block.next = gone.next;
      if (block.next != none) h.at(block.next).prev = i;
    }
    h.retire(other);
  }
}

/// A new record that follows (or precedes) block i in its chain; in no list yet.
inline std::int32_t splice(Heap& h, std::int32_t i, bool behind, std::int64_t address, std::int64_t size,
                           BlockState state) {
  const auto fresh = h.new_record();
  auto& b = h.at(fresh);
  auto& old = h.at(i);
  b = {address, size, 0, behind ? i : old.prev, behind ? old.next : i, none, none, 0, old.pool, old.range, state};
  if (b.prev != none) h.at(b.prev).next = fresh;
  if (b.next != none) h.at(b.next).prev = fresh;
  return fresh;
}

inline std::int16_t new_range(Heap& h, const AddressRange& range) {
  if (h.ranges.size() > static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max()))
    throw Error("allocator", "more than 32768 address ranges", "give the device's total_memory");
  h.ranges.push_back(range);
  h.picky = true;
  return static_cast<std::int16_t>(h.ranges.size() - 1);
}

/// The block at the lowest address from which cached and unmapped neighbours offer `size` bytes; in a new address range
/// where there is none.
template <class Driver>
std::int32_t find_expandable(Heap& h, Driver& driver, std::uint16_t pool, std::int64_t size) {
  const auto free = [&](std::int32_t i) {
    return i != none && (h.at(i).state == BlockState::cached || h.at(i).state == BlockState::unmapped);
  };
  for (auto i : h.unmapped[pool]) {
    if (free(h.at(i).prev)) i = h.at(i).prev;
    std::int64_t room = 0;
    for (auto b = i; room < size && free(b); b = h.at(b).next) room += h.at(b).size;
    if (room >= size) return i;
  }
  const auto page = pool_kind(pool) == Pool::small ? small_segment_size : h.config.large_segment_size.value();
  const auto bytes = address_range(h.config, page);
  const auto base = driver.reserve(bytes);
  const auto range = new_range(h, {base, bytes, page});
  const auto i = h.new_record();
  h.at(i) = {base, bytes, 0, none, none, none, none, 0, pool, range, BlockState::unmapped};
  insert_unmapped(h, i);
  return i;
}

/// Maps pages for the first `size` bytes of an unmapped block and caches them; false where memory is short.
template <class Driver>
bool map_block(Heap& h, Driver& driver, std::int32_t i, std::int64_t size) {
  const auto page = h.ranges[static_cast<std::size_t>(h.at(i).range)].page;
  const auto bytes = (size + page - 1) / page * page;
  const auto address = driver.map(h.at(i).address, bytes);
  if (!address) return false;
  erase_unmapped(h, i);
  if (h.at(i).alone())  // a recorded range shows where it lies only now
    h.at(i).address = h.ranges[static_cast<std::size_t>(h.at(i).range)].base = *address;
  if (const auto& b = h.at(i); bytes < b.size) {
    insert_unmapped(h, splice(h, i, true, b.address + bytes, b.size - bytes, BlockState::unmapped));
    h.at(i).size = bytes;
  }
  h.at(i).state = BlockState::cached;
  merge_neighbours(h, i);
  h.cache(i);
  h.reserve(bytes);
  return true;
}

/// A cached block of at least `size` bytes, made by mapping; `none` where memory is short. What was mapped before it
/// ran short stays cached, as in torch.
template <class Driver>
std::int32_t expand(Heap& h, Driver& driver, std::uint16_t pool, std::int64_t size) {
  auto i = find_expandable(h, driver, pool, size);
  if (h.at(i).state == BlockState::unmapped && !map_block(h, driver, i, std::min(h.at(i).size, size))) return none;
  while (h.at(i).size < size) {
    const auto next = h.at(i).next;
    if (next == none) return none;  // more than the whole address range
    if (!map_block(h, driver, next, std::min(size - h.at(i).size, h.at(next).size))) return none;
    i = next;  // it has taken in the block before it
  }
  return i;
}

/// Gives back the whole pages inside a cached block; an address range without memory goes altogether.
template <class Driver>
void unmap_block(Heap& h, Driver& driver, std::int32_t i) {
  const auto r = h.ranges[static_cast<std::size_t>(h.at(i).range)];
  const auto block = h.at(i);
  const auto begin = r.base + (block.address - r.base + r.page - 1) / r.page * r.page;
  const auto end = r.base + (block.address + block.size - r.base) / r.page * r.page;
  if (begin >= end) return;
  driver.unmap(begin, end - begin);
  h.uncache(i);
  h.at(i).address = begin;
  h.at(i).size = end - begin;
  h.at(i).state = BlockState::unmapped;
  if (begin > block.address) h.cache(splice(h, i, false, block.address, begin - block.address, BlockState::cached));
  if (block.address + block.size > end)
    h.cache(splice(h, i, true, end, block.address + block.size - end, BlockState::cached));
  merge_neighbours(h, i);
  h.reserved -= end - begin;
  if (h.at(i).alone()) {
    driver.unreserve(r.base, r.size);
    h.retire(i);
  } else {
    insert_unmapped(h, i);
  }
}

}  // namespace vlmest::allocator
