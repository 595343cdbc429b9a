// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/allocator/process.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/transform/training_step.hpp>

namespace vlmest {

/// A training step in the steady state: the second one, when optimizer states exist.
struct TrainingEstimate {
  Elements trainable{};
  Bytes weights{};            ///< parameters and buffers as the allocator holds them
  Bytes gradients{};          ///< of all trained parameters
  Bytes optimizer{};          ///< states
  Bytes saved_activations{};  ///< activations alive when the forward has ended
  Bytes forward_end{};        ///< allocated when the forward has ended
  allocator::PhaseMemory forward, backward, step;
  Work work;  ///< of the whole step
  Seconds gpu{}, wall{};
  Bound bound = Bound::compute;
  Bytes peak{};
  Bytes reserved{};
  const char* peak_phase = "";
  std::vector<LiveTensor> tensors;  ///< at the highest of the three peaks; they add up to `peak`
  bool fits = false;
};

namespace training_estimate {

/// Everything alive at a node of the steady state, sorted by bytes: optimizer states from the first node on.
inline std::vector<LiveTensor> live(const Timeline& timeline, const allocator::Process& process,
                                    const allocator::PhaseMemory& m) {
  std::vector<LiveTensor> r;
  const auto storages = timeline.storages();
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const Storage& s = storages[i];
    const bool state = s.role == Role::optimizer_state;
    if (!state && (s.born > m.node || (s.dies != none && s.dies <= m.node))) continue;
    if (const Bytes bytes = process.occupied(i); bytes > Bytes{}) r.push_back({s.tensor, "", none, bytes});
  }
  if (process.library_workspaces() > Bytes{})
    r.push_back({none, "cuBLAS workspaces", none, process.library_workspaces()});
  if (m.scratch > Bytes{}) r.push_back({none, "scratch", m.node, m.scratch});
  std::sort(r.begin(), r.end(), [](const LiveTensor& a, const LiveTensor& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.tensor < b.tensor;
  });
  return r;
}

}  // namespace training_estimate

/// Builds the step into c.b.graph and replays it twice in a fresh process: the first step makes the optimizer states.
inline TrainingEstimate estimate_training(Context& c, const Vlm& vlm, const Sequences& s, const Device& device,
                                          Timeline& timeline) {
  TrainingEstimate e;
  build_training(c, vlm, s);
  const Graph& g = c.b.graph;
  timeline.assign(g);
  allocator::Process process(g, timeline, device.sm);
  process.load();
  e.weights = process.weights();
  const Phase &forward = g.phases[0], &backward = g.phases[1], &step = g.phases[2];
  const std::size_t begin = process.mark();
  const auto run = [&](const Phase& p) {
    allocator::PhaseMemory m = process.run(p);
    m.after = process.settle(p);
    process.keep();
    return m;
  };
  for (const Phase& p : {forward, backward, step}) run(p);
  process.rewind(begin);
  e.forward = run(forward);
  e.forward_end = e.forward.after;
  for (const auto& t : timeline.storages()) {
    if (t.role == Role::optimizer_state) e.optimizer += t.bytes;
    if (t.role == Role::gradient) e.gradients += t.bytes;
    if (t.role == Role::activation && t.born < forward.last && (t.dies == none || t.dies > forward.last))
      e.saved_activations += t.bytes;
  }
  e.backward = run(backward);
  e.step = run(step);
  const allocator::PhaseMemory* top = &e.forward;
  e.peak_phase = "forward";
  if (e.backward.peak > top->peak) {
    top = &e.backward;
    e.peak_phase = "backward";
  }
  if (e.step.peak > top->peak) {
    top = &e.step;
    e.peak_phase = "step";
  }
  e.peak = top->peak;
  e.reserved = e.step.reserved;
  e.tensors = training_estimate::live(timeline, process, *top);
  for (const auto& t : g.loaded())
    if (t.role == Role::weight && trains(c.plan.trainable, g.scopes[static_cast<std::size_t>(t.scope)].part))
      e.trainable += t.storage;
  const std::vector<Work> of_ops = op_works(g, device);
  e.work = work(g, forward.first, step.last, of_ops);
  e.gpu = e.work.time;
  const Seconds host = device.launch * static_cast<double>(e.work.kernels);
  e.wall = std::max(e.gpu, host);
  e.bound = host > e.gpu ? Bound::launch : bound(e.work);
  e.fits = e.peak <= device.usable_bytes;
  return e;
}

}  // namespace vlmest
