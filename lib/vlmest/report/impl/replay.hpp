// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {
namespace replay {

/// Memory of the N phases that are measured last.
template <std::size_t N>
class MeasuredPhases {
 public:
  void operator()(const allocator::PhaseMemory& m) {
    std::rotate(last_.begin(), last_.begin() + 1, last_.end());
    last_.back() = m;
    ++count_;
  }
  const std::array<allocator::PhaseMemory, N>& get() const {
    if (count_ < N)
      throw Error("graph.script", "measures " + std::to_string(count_) + " phases of " + std::to_string(N));
    return last_;
  }

 private:
  std::array<allocator::PhaseMemory, N> last_{};
  std::size_t count_ = 0;
};

template <std::size_t N>
std::array<allocator::PhaseMemory, N> measured_phases(const Graph& g, allocator::Process& process,
                                                      std::vector<allocator::NodeMemory>* nodes) {
  MeasuredPhases<N> r;
  if (nodes == nullptr)
    allocator::walk(g.script, g, process, allocator::Unobserved{}, r);
  else
    allocator::walk(
        g.script, g, process, [&](const allocator::NodeMemory& m) { nodes->push_back(m); }, r);
  return r.get();
}

}  // namespace replay

VLMEST_INLINE allocator::AllocatorConfig without_limit(const Device& device, allocator::AllocatorConfig c) {
  c = within(device, c);
  c.capacity = Bytes(allocator::no_limit);
  c.memory_fraction = 1;
  // Nor is the address range, which follows the device's memory.
  if (c.expandable_segments) c.total_memory = std::max(c.total_memory, Bytes(std::int64_t{1} << 50));
  return c;
}

VLMEST_INLINE InferenceMemory replay_inference(const Graph& g, allocator::Process& process,
                                               std::vector<allocator::NodeMemory>* nodes) {
  const auto r = replay::measured_phases<2>(g, process, nodes);
  return {r[0], r[1]};
}

VLMEST_INLINE TrainingMemory replay_training(const Graph& g, allocator::Process& process,
                                             std::vector<allocator::NodeMemory>* nodes) {
  const auto r = replay::measured_phases<3>(g, process, nodes);
  return {r[0], r[1], r[2]};
}

VLMEST_INLINE TrainingAndLoop replay_training_and_loop(const Graph& g, allocator::Process& process) {
  replay::MeasuredPhases<3> phases;
  const Bytes reserved = allocator::walk_both(g.script, g.loop, g, process, phases);
  const auto& r = phases.get();
  return {{r[0], r[1], r[2]}, reserved};
}

}  // namespace vlmest
