// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/allocator/expandable.hpp>
#include <vlmest/allocator/release.hpp>

/// What malloc does where no cached block fits. Source: c10/cuda/CUDACachingAllocator.cpp.
namespace vlmest::allocator {

/// alloc_block: a cached block of new memory, or `none` where memory is short.
template <class Driver>
std::int32_t open_segment(Heap& h, Driver& driver, std::uint16_t pool, std::int64_t size) {
  const auto bytes = segment_size(h.config, size);
  if (bytes > allowed_memory(h.config) - h.reserved) return none;
  if (h.config.expandable_segments) return expand(h, driver, pool, size);
  const auto address = driver.take(bytes);
  if (!address) return none;
  h.reserve(bytes);
  const auto i = h.new_record();
  h.at(i) = {*address, bytes, 0, none, none, none, none, 0, pool, none, BlockState::cached};
  h.cache(i);
  return i;
}

/// The order of malloc: collect garbage where that is on, then new memory; else give back oversize blocks and retry;
/// else the whole cache and retry.
template <class Driver>
std::int32_t grow(Heap& h, Driver& driver, std::uint16_t pool, std::int64_t size) {
  ++h.growths;
  if (h.collects) collect_garbage(h, driver);
  auto i = open_segment(h, driver, pool, size);
  if (i == none && release_oversize(h, driver, pool, size)) i = open_segment(h, driver, pool, size);
  if (i != none) return i;
  release_cached(h, driver);
  return open_segment(h, driver, pool, size);
}

}  // namespace vlmest::allocator
