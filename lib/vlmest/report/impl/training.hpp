// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/analysis/params.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/nn/trainable.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/peak_parts.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/report/run_time.hpp>
#include <vlmest/report/training.hpp>
#include <vlmest/transform/training_step.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE Elements trainable_parameters(const Graph& g, const Plan& plan) {
  Elements n{};
  for (const auto& t : g.loaded())
    if (trains(plan, g, t)) n += parameter_count(t);
  for (const ShardedWeight& w : g.sharded)  // the other ranks' parts
    if (const Tensor& t = g.tensor(w.weight); trains(plan, g, t)) n += parameter_count(t) * (w.ranks - 1);
  return n;
}

VLMEST_INLINE Elements trainable_parameters(Builder& b, const Vlm& vlm, const Plan& plan) {
  b.clear();
  Context c{b, plan, stack_of(plan)};
  Adapters adapters;
  if (plan.lora.rank > 0) c.adapters = &adapters;
  declare_parameters(c, vlm);
  declare_adapters(c);
  return trainable_parameters(b.graph, plan);
}

VLMEST_INLINE Parameters parameters_without_adapters(const Graph& g) {
  Parameters p = parameters(g);
  for (const auto& t : g.loaded()) {
    if (t.role != Role::weight || !is_adapter(g, t)) continue;
    switch (g.scopes[static_cast<std::size_t>(t.scope)].part) {
      case Part::vision: p.vision -= parameter_count(t); break;
      case Part::audio: p.audio -= parameter_count(t); break;
      case Part::language: p.language -= parameter_count(t); break;
      default: p.projector -= parameter_count(t); break;
    }
  }
  return p;
}

namespace training_estimate {

VLMEST_INLINE bool fits(TrainingEstimate& r, const Graph& g, const Timeline& timeline, const Device& device,
                        const allocator::AllocatorConfig& settings) {
  if (r.peak > device.usable_bytes) return false;
  if (!is_limited(settings, r.reserved, device)) return true;
  allocator::Process process(g, timeline, device.sm, within(device, settings));
  try {
    // A phase that is short of memory gives cached segments back: what was reserved before it counts too.
    const TrainingMemory m = replay_training(g, process);
    r.reserved = std::max({m.forward.reserved, m.backward.reserved, m.step.reserved});
  } catch (const allocator::OutOfMemory&) {
    return false;
  }
  return true;
}

VLMEST_INLINE void add_totals(TrainingEstimate& e, const Graph& g, const Timeline& timeline, const Phase& forward,
                              const Phase& backward, std::span<const Work> of_ops) {
  e.forward_work = total_work(g, forward.first, forward.last, of_ops);
  e.backward_work = total_work(g, backward.first, backward.last, of_ops);
  for (const auto& s : timeline.storages())
    if (left_by(s, forward)) e.saved_activations += s.bytes;
  for (const auto& f : fft_buffers(g)) e.fft = std::max(e.fft, f.bytes);
}

VLMEST_INLINE std::int64_t trained_tensors(const Timeline& t) {
  return std::count_if(t.storages().begin(), t.storages().end(),
                       [](const Storage& s) { return s.role == Role::gradient; });
}

VLMEST_INLINE void add_work(TrainingEstimate& e, const Graph& g, const Timeline& timeline, std::span<const Work> of_ops,
                            const Plan& plan, const Device& device, bool details, std::vector<LayerRow>& rows) {
  e.micro_batches = plan.gradient_accumulation;
  const Phase *phases = g.phases.data() + (g.phases.size() - 3), &forward = phases[0], &step = phases[2];
  if (details)
    rows = training_breakdown(g, timeline, forward, phases[1], of_ops);
  else
    add_totals(e, g, timeline, forward, phases[1], of_ops);
  for (const auto& row : rows) {
    e.forward_work += row.forward;
    e.backward_work += row.backward;
    e.saved_activations += row.saved;
    e.fft = std::max(e.fft, row.fft);
  }
  e.step_work = work(g, step.first, step.last, of_ops);
  for (const auto& s : timeline.storages()) {
    if (s.role == Role::optimizer_state) e.optimizer += s.bytes;
    if (s.role == Role::gradient) e.gradients += s.bytes;
  }
  e.trainable = trainable_parameters(g, plan);
  // A graph of several micro-batches holds two: the first, and one that adds to the gradients as all further ones do.
  const bool further = g.phases.size() > 3;
  const CheckpointedWork again = checkpointed_work(g, phases[1]);
  e.checkpointed_tensors = again.saved;
  const auto between = e.micro_batches - 2;
  Work first_forward;
  if (further) {
    const Phase &first = g.phases[0], &back = g.phases[1];
    first_forward = work(g, first.first, first.last, of_ops);
    e.work += first_forward;
    e.work += work(g, back.first, back.last, of_ops);
    e.work += times(e.forward_work, between);
    e.work += times(e.backward_work, between);
  }
  const auto passes = [&](Pace& pace, const Device& d) {
    if (further) {
      const Phase &first = g.phases[0], &back = g.phases[1];
      run_forward(pace, g, first, first_forward, checkpointed_work(g, back), of_ops, d);
      run_backward(pace, g, back, of_ops, d);
      // Host and device keep their pace over all micro-batches between the first and the last.
      const Pace before = pace;
      if (between > 0) {
        run_forward(pace, g, forward, e.forward_work, again, of_ops, d);
        run_backward(pace, g, phases[1], of_ops, d);
        pace.repeat(before, between);
      }
    }
    run_forward(pace, g, forward, e.forward_work, again, of_ops, d);
    run_backward(pace, g, phases[1], of_ops, d);
  };
  Pace pace;
  passes(pace, device);
  e.passes_host = pace.streams.end(Stream::host);
  const std::int64_t parameters = trained_tensors(timeline);
  run_step(pace, g, step, e.step_work, parameters, of_ops, device);
  if (details)
    e.wall_range = wall_range(device, [&](Pace& p, const Device& d) {
      passes(p, d);
      run_step(p, g, step, e.step_work, parameters, of_ops, d);
    });
  Pace alone;
  run_step(alone, g, step, e.step_work, parameters, of_ops, device);
  e.step_wall = alone.wall();
  for (const Work* w : {&e.forward_work, &e.backward_work, &e.step_work}) e.work += *w;
  e.gpu = e.work.time;
  const RunTime t = pace.result(e.work);
  e.wall = t.wall;
  e.graph = t.graph;
  e.bound = t.bound;
}

VLMEST_INLINE void add_memory(TrainingEstimate& e, const Graph& g, const Timeline& timeline, const Device& device,
                              const allocator::AllocatorConfig& settings, bool details, Passes passes) {
  allocator::Process process(g, timeline, device.sm, without_limit(device, settings));
  TrainingMemory memory;
  if (details) {
    const TrainingAndLoop both = replay_training_and_loop(g, process, passes);
    memory = both.step;
    e.reserved_in_loop = both.reserved_in_loop;
    e.reserved_in_two_steps = both.reserved_in_two_steps;
  } else {
    memory = replay_training(g, process, nullptr, passes);
  }
  e.forward = memory.forward;
  e.forward_end = memory.forward.after;
  e.backward = memory.backward;
  e.step = memory.step;
  e.weights = process.weights();
  const allocator::PhaseMemory& top = memory.highest();
  e.peak_phase = &top == &memory.forward    ? PhaseKind::forward
                 : &top == &memory.backward ? PhaseKind::backward
                                            : PhaseKind::step;
  e.peak = top.peak;
  e.reserved = memory.step.reserved;
  e.fits = fits(e, g, timeline, device, settings);
  if (!details) return;
  const std::vector<std::size_t> alive = alive_at_peak(timeline, top);
  e.tensors = live_tensors(timeline, alive, process, top);
  e.parts = peak_parts(timeline, alive, process, top, &g.phases[g.phases.size() - 3]);
  // At the limit the allocator gives its cache back before it fails.
  if (e.fits) e.reserved_in_loop = std::min(e.reserved_in_loop, reservable(device, settings));
}

VLMEST_INLINE TrainingEstimate of(const Graph& g, const Timeline& timeline, std::span<const Work> of_ops,
                                  const Plan& plan, const Device& device, const allocator::AllocatorConfig& settings,
                                  bool details, std::vector<LayerRow>& rows) {
  TrainingEstimate e;
  add_work(e, g, timeline, of_ops, plan, device, details, rows);
  add_memory(e, g, timeline, device, settings, details);
  return e;
}

}  // namespace training_estimate

VLMEST_INLINE TrainingEstimate estimate_training(Context& c, const Vlm& vlm, const Sequences& s, const Device& device,
                                                 Timeline& timeline) {
  build_training(c, vlm, s);
  timeline.assign(c.b.graph);
  std::vector<LayerRow> rows;
  return training_estimate::of(c.b.graph, timeline, op_works(c.b.graph, device), c.plan, device, {}, true, rows);
}

}  // namespace vlmest
