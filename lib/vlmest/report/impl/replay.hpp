// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/report/replay.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE allocator::AllocatorConfig without_limit(const Device& device, allocator::AllocatorConfig c) {
  c = within(device, c);
  c.capacity = Bytes(allocator::no_limit);
  c.memory_fraction = 1;
  // Nor is the address range, which follows the device's memory.
  if (c.expandable_segments) c.total_memory = std::max(c.total_memory, Bytes(std::int64_t{1} << 50));
  return c;
}

VLMEST_INLINE Bytes replay_loop(const Graph& g, allocator::Process& process) {
  const auto nothing = [](const auto&) {};
  return allocator::walk(g.loop, g, process, nothing, nothing);
}

}  // namespace vlmest
