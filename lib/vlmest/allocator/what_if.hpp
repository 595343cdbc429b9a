// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include <vlmest/allocator/caching_allocator.hpp>
#include <vlmest/allocator/initial_state.hpp>

namespace vlmest::allocator {

/// The highest figures of a process.
struct Peaks {
  Bytes allocated{}, reserved{};
};

/// What a recorded process would have reached with other settings: the same requests in the same order, from a fresh
/// start with what was live when the recording began. Throws OutOfMemory within the settings' limits.
inline Peaks peaks_with(const AllocatorConfig& settings, const MemorySnapshot& m, const InitialState& initial) {
  CachingAllocator a(settings);
  std::map<std::int64_t, Block> live;  // by the address that they had
  for (const auto& s : initial.segments)
    for (const auto& b : s.blocks)
      if (b.active()) live[b.address] = a.alloc(b.requested, s.stream);
  for (const auto& e : m.events) {
    if (e.action == TraceAction::alloc) live[e.address] = a.alloc(e.size, e.stream);
    if (e.action == TraceAction::free_requested) a.free(live[e.address]);
  }
  return {a.peak_allocated(), a.peak_reserved()};
}

}  // namespace vlmest::allocator
