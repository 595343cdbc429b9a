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

VLMEST_INLINE TrainingAndLoop replay_training_and_loop(const Graph& g, allocator::Process& process) {
  MeasuredPhases<3> phases;
  const Bytes reserved = allocator::walk_both(g.script, g.loop, g, process, phases);
  const auto& r = phases.get();
  return {{r[0], r[1], r[2]}, reserved};
}

}  // namespace vlmest
