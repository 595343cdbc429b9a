// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>

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

/// The first call warms the allocator and the libraries up; the second is what runs from then on, and decode follows.
/// `observe` is told of its nodes.
template <class Observe>
InferenceMemory replay_inference(const Graph& g, allocator::Process& process, Observe&& observe) {
  InferenceMemory r;
  process.load();
  process.run(g.phases[0]);
  process.drop();
  r.prefill = process.run(g.phases[0], observe);
  process.keep();
  r.decode = process.run(g.phases[1], observe);
  return r;
}
inline InferenceMemory replay_inference(const Graph& g, allocator::Process& process) {
  return replay_inference(g, process, [](const allocator::NodeMemory&) {});
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

/// The first step makes the optimizer states; the second is what runs from then on, and `observe` is told of its nodes.
/// Between them the cache is emptied, as scripts that measure a step do (torch.cuda.empty_cache(), then
/// reset_peak_memory_stats()): what the second reserves is its own, without what the first one left in pieces.
template <class Observe>
TrainingMemory replay_training(const Graph& g, allocator::Process& process, Observe&& observe) {
  process.load();
  process.empty_cache();  // from_pretrained() makes no tensor that it drops again
  const std::size_t begin = process.mark();
  const auto run = [&](const Phase& p, auto&& o) {
    allocator::PhaseMemory m = process.run(p, o);
    m.after = process.settle(p);
    process.keep();
    return m;
  };
  const auto nothing = [](const allocator::NodeMemory&) {};
  for (const Phase& p : std::span(g.phases).first(g.phases.size() - 1)) run(p, nothing);
  // Of the first optimizer step only the states remain, which come before anything runs.
  Phase states = g.phases.back();
  states.last = std::min(states.last, states.first + 1);
  run(states, nothing);
  process.rewind(begin);
  process.empty_cache();
  std::array<allocator::PhaseMemory, 3> last{};
  for (const Phase& p : g.phases) last = {last[1], last[2], run(p, observe)};
  return {last[0], last[1], last[2]};
}
inline TrainingMemory replay_training(const Graph& g, allocator::Process& process) {
  return replay_training(g, process, [](const allocator::NodeMemory&) {});
}

/// torch.cuda.max_memory_reserved() of a loop that never empties the cache. Its first step runs without optimizer
/// states, which then lie in the segments that it leaves, so that what the next steps need finds less room there. Steps
/// run until one reserves nothing more, which is the third or fourth.
Bytes replay_loop(const Graph& g, allocator::Process& process);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/replay.hpp>
#endif
