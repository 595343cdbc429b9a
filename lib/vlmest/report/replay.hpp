// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <vlmest/allocator/process.hpp>
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

/// Runs the graph by its script. `nodes`, where given, gets the nodes of both phases in the order in which they run.
InferenceMemory replay_inference(const Graph& g, allocator::Process& process,
                                 std::vector<allocator::NodeMemory>* nodes = nullptr);

/// The phase with the highest peak, the earliest of equals.
inline const allocator::PhaseMemory& highest(const allocator::PhaseMemory& forward,
                                             const allocator::PhaseMemory& backward,
                                             const allocator::PhaseMemory& step) {
  const allocator::PhaseMemory& first = backward.peak > forward.peak ? backward : forward;
  return step.peak > first.peak ? step : first;
}

/// Memory of a training step; `after` is what is allocated when the phase's own variables are gone.
struct TrainingMemory {
  allocator::PhaseMemory forward, backward, step;
  const allocator::PhaseMemory& highest() const { return vlmest::highest(forward, backward, step); }
};

/// Of several forwards and backwards the last ones, or those that need most: a pipeline's first ones can. With
/// `first_forward` no forward runs behind a backward.
enum class Passes : std::uint8_t { last, highest, first_forward };

/// Runs the graph by its script. `nodes`, where given, gets the nodes of a whole step.
TrainingMemory replay_training(const Graph& g, allocator::Process& process,
                               std::vector<allocator::NodeMemory>* nodes = nullptr, Passes passes = Passes::last);

/// The same, and torch.cuda.max_memory_reserved() of a loop of steps, by the graph's script for that. The process is
/// then the one that was measured.
struct TrainingAndLoop {
  TrainingMemory step;
  Bytes reserved_in_loop{};
  Bytes reserved_in_two_steps{};  ///< after the first two of them
};
TrainingAndLoop replay_training_and_loop(const Graph& g, allocator::Process& process, Passes passes = Passes::last);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/replay.hpp>
#endif
