// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {
namespace replay {

/// Memory of the at most N phases that are measured last.
template <std::size_t N>
class MeasuredPhases {
 public:
  void operator()(const allocator::PhaseMemory& m) {
    std::rotate(last_.begin(), last_.begin() + 1, last_.end());
    last_.back() = m;
    ++count_;
  }
  /// The last so many of them stand at the end.
  const std::array<allocator::PhaseMemory, N>& get(std::size_t wanted = N) const {
    if (count_ < wanted)
      throw Error("graph.script", "measures " + std::to_string(count_) + " phases of " + std::to_string(wanted));
    return last_;
  }

 private:
  std::array<allocator::PhaseMemory, N> last_{};
  std::size_t count_ = 0;
};

template <std::size_t N>
std::array<allocator::PhaseMemory, N> measured_phases(const Graph& g, allocator::Process& process,
                                                      std::vector<allocator::NodeMemory>* nodes,
                                                      std::size_t wanted = N) {
  MeasuredPhases<N> r;
  if (nodes == nullptr)
    allocator::walk(g.script, g, process, allocator::Unobserved{}, r);
  else
    allocator::walk(
        g.script, g, process, [&](const allocator::NodeMemory& m) { nodes->push_back(m); }, r);
  return r.get(wanted);
}

/// Of the phases that were measured.
inline TrainingMemory of_passes(const Graph& g, const std::array<allocator::PhaseMemory, 5>& all, Passes passes) {
  const bool several = passes != Passes::last && g.phases.size() > 3;
  const auto of = [&](std::size_t first, std::size_t last) {
    return several && all[first].peak > all[last].peak ? all[first] : all[last];
  };
  return {several && passes == Passes::first_forward ? all[0] : of(0, 2), of(1, 3), all[4]};
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
                                             std::vector<allocator::NodeMemory>* nodes, Passes passes) {
  return replay::of_passes(g, replay::measured_phases<5>(g, process, nodes, g.phases.size()), passes);
}

VLMEST_INLINE TrainingAndLoop replay_training_and_loop(const Graph& g, allocator::Process& process, Passes passes) {
  replay::MeasuredPhases<5> phases;
  const allocator::ReservedInRounds reserved = allocator::walk_both(g.script, g.loop, g, process, phases);
  return {replay::of_passes(g, phases.get(g.phases.size()), passes), reserved.at_end, reserved.after_two};
}

}  // namespace vlmest
