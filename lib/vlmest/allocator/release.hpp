// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/allocator/expandable.hpp>
#include <vlmest/allocator/heap.hpp>

/// Giving cached memory back to the driver. Source: c10/cuda/CUDACachingAllocator.cpp, each function under torch's
/// name.
namespace vlmest::allocator {

/// release_block: a whole cached segment.
template <class Driver>
void release_segment(Heap& h, Driver& driver, std::int32_t i) {
  driver.give_back(h.at(i).address, h.at(i).size);
  h.uncache(i);
  h.reserved -= h.at(i).size;
  h.retire(i);
}

/// release_cached_blocks: waits for all streams, then gives back everything that holds no live block.
template <class Driver>
void release_cached(Heap& h, Driver& driver) {
  for (const auto i : driver.synchronize(h)) h.complete_free(i);
  h.awaiting.clear();
  std::vector<std::int32_t> pages;
  for (const auto kind : {Pool::large, Pool::small}) {
    pages.clear();
    for (const auto pool : h.pools(kind)) {
      for (auto i = h.cached[pool].first(h.blocks.data()); i != none;) {
        const auto next = h.cached[pool].after(h.blocks.data(), i);
        if (h.at(i).range != none)
          pages.push_back(i);
        else if (h.at(i).alone())
          release_segment(h, driver, i);
        i = next;
      }
    }
    for (const auto i : pages) unmap_block(h, driver, i);
  }
}

/// release_available_cached_blocks: one oversize block of the stream that is large enough, else its largest ones until
/// their sum is. False where that is not enough, or where no max_split_size is set.
template <class Driver>
bool release_oversize(Heap& h, Driver& driver, std::uint16_t pool, std::int64_t size) {
  const auto limit = h.config.max_split_size.value();
  if (limit == no_limit) return false;
  const auto wanted = std::max(size, limit);
  auto& list = h.cached[pool];
  const auto found = list.first_at_least(h.blocks.data(), wanted);
  if (found != none && h.at(found).range == none && h.at(found).alone()) {
    release_segment(h, driver, found);
    return true;
  }
  std::int64_t released = 0;
  auto i = found == none ? list.last(h.blocks.data()) : list.before(h.blocks.data(), found);
  while (i != none && released < wanted && h.at(i).size >= limit) {
    const auto next = list.before(h.blocks.data(), i);
    if (h.at(i).range == none && h.at(i).alone()) {
      released += h.at(i).size;
      release_segment(h, driver, i);
    }
    i = next;
  }
  return released >= wanted;
}

/// garbage_collect_cached_blocks: gives back whole large segments of more than average age, the searches that their
/// pool has seen since they were cached, until `reserved` is below the limit.
template <class Driver>
void collect_garbage(Heap& h, Driver& driver) {
  const auto limit = collection_limit(h.config);
  if (h.reserved <= limit) return;
  const auto target = h.reserved - limit;
  const auto age = [&](std::int32_t i) { return h.searches[h.at(i).pool & 1u] - h.since[static_cast<std::size_t>(i)]; };
  const auto pools = h.pools(Pool::large);
  std::int64_t total = 0, count = 0, released = 0;
  for (const auto pool : pools)
    for (auto i = h.cached[pool].first(h.blocks.data()); i != none; i = h.cached[pool].after(h.blocks.data(), i))
      if (h.at(i).alone()) total += age(i), ++count;
  for (bool freed = true; released < target && freed && count > 0;) {
    const double average = static_cast<double>(total) / static_cast<double>(count);
    freed = false;
    for (const auto pool : pools) {
      for (auto i = h.cached[pool].first(h.blocks.data()); i != none;) {
        const auto next = h.cached[pool].after(h.blocks.data(), i);
        if (h.at(i).alone() && h.at(i).range == none && static_cast<double>(age(i)) >= average) {
          freed = true;
          released += h.at(i).size;
          total -= age(i);
          --count;
          release_segment(h, driver, i);
        }
        i = next;
      }
    }
  }
}

}  // namespace vlmest::allocator
