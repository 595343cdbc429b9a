// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/device/device.hpp>

namespace vlmest {

/// Whether a run that would reserve that much is replayed within the device's memory, where the allocator gives its
/// cache back before it fails.
inline bool is_limited(const allocator::AllocatorConfig& c, Bytes reserved, const Device& device) {
  return reserved > device.usable_bytes || c.memory_fraction < 1;
}
inline allocator::AllocatorConfig within(const Device& device, allocator::AllocatorConfig c) {
  c.capacity = device.usable_bytes;
  if (c.total_memory == Bytes{}) c.total_memory = device.memory_bytes;
  return c;
}
/// The most that the allocator can reserve.
inline Bytes reservable(const Device& device, const allocator::AllocatorConfig& c) {
  return std::min(device.usable_bytes, Bytes(allocator::allowed_memory(within(device, c))));
}
/// The same settings where memory is no limit.
allocator::AllocatorConfig without_limit(const Device& device, allocator::AllocatorConfig c);

/// Memory of the phases of inference: one prefill and one decode step.
struct InferenceMemory {
  allocator::PhaseMemory prefill, decode;
};

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

/// Runs the graph by its script. Memory of the N phases that are measured last.
template <std::size_t N, class Observe>
std::array<allocator::PhaseMemory, N> measured_phases(const Graph& g, allocator::Process& process, Observe&& observe) {
  MeasuredPhases<N> r;
  allocator::walk(g.script, g, process, observe, r);
  return r.get();
}

/// `observe` is told of the nodes of both.
template <class Observe>
InferenceMemory replay_inference(const Graph& g, allocator::Process& process, Observe&& observe) {
  const auto r = measured_phases<2>(g, process, observe);
  return {r[0], r[1]};
}
inline InferenceMemory replay_inference(const Graph& g, allocator::Process& process) {
  return replay_inference(g, process, allocator::Unobserved{});
}

/// The phase with the highest peak, the earliest of equals.
inline const allocator::PhaseMemory& highest(const allocator::PhaseMemory& forward,
                                             const allocator::PhaseMemory& backward,
                                             const allocator::PhaseMemory& step) {
  const allocator::PhaseMemory& first = backward.peak > forward.peak ? backward : forward;
  return step.peak > first.peak ? step : first;
}

/// Memory of the last three phases of a training step; `after` is what is allocated when the phase's own variables are
/// gone.
struct TrainingMemory {
  allocator::PhaseMemory forward, backward, step;
  const allocator::PhaseMemory& highest() const { return vlmest::highest(forward, backward, step); }
};

/// `observe` is told of the nodes of a whole step.
template <class Observe>
TrainingMemory replay_training(const Graph& g, allocator::Process& process, Observe&& observe) {
  const auto r = measured_phases<3>(g, process, observe);
  return {r[0], r[1], r[2]};
}
inline TrainingMemory replay_training(const Graph& g, allocator::Process& process) {
  return replay_training(g, process, allocator::Unobserved{});
}

/// The same, and torch.cuda.max_memory_reserved() of a loop of steps, by the graph's script for that. The process is
/// then the one that was measured.
struct TrainingAndLoop {
  TrainingMemory step;
  Bytes reserved_in_loop{};
};
TrainingAndLoop replay_training_and_loop(const Graph& g, allocator::Process& process);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/replay.hpp>
#endif
