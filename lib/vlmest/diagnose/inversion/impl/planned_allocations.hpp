// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/inversion/planned_allocations.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {

VLMEST_INLINE std::vector<PlannedAllocation> inference_allocations(const Graph& g, const Timeline& timeline,
                                                                   const Device& device,
                                                                   const allocator::AllocatorConfig& settings) {
  std::vector<PlannedAllocation> r;
  std::vector<allocator::NodeMemory> nodes;
  allocator::Process process(g, timeline, device.sm, without_limit(device, settings));
  replay_inference(g, process, &nodes);
  planned_allocations::Recorder recorder(g, timeline, process, r);
  recorder.load();
  for (const Phase& p : g.phases) recorder.phase(p, nodes, Moment::inference);
  return r;
}

VLMEST_INLINE std::vector<PlannedAllocation> training_allocations(const Graph& g, const Timeline& timeline,
                                                                  const Device& device,
                                                                  const allocator::AllocatorConfig& settings) {
  std::vector<PlannedAllocation> r;
  std::vector<allocator::NodeMemory> nodes;
  allocator::Process process(g, timeline, device.sm, without_limit(device, settings));
  const TrainingMemory memory = replay_training(g, process, &nodes);
  Bytes states{};
  for (std::size_t i = 0; i < timeline.storages().size(); ++i)
    if (timeline.storages()[i].role == Role::optimizer_state) states += process.occupied(i);
  planned_allocations::Recorder recorder(g, timeline, process, r);
  recorder.load();
  const Phase& step = g.phases.back();
  for (const Phase& p : g.phases)
    if (&p != &step) recorder.phase(p, nodes, Moment::first_step, states);
  recorder.states(step, memory.step.before - states);
  recorder.phase(step, nodes, Moment::first_step);
  for (const Phase& p : g.phases) recorder.phase(p, nodes, Moment::later_step);
  return r;
}

}  // namespace vlmest::diagnose
