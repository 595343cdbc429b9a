// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/inference.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/peak_parts.hpp>
#include <vlmest/report/replay.hpp>
#include <vlmest/report/run_time.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {
namespace inference_estimate {

VLMEST_INLINE void time(PhaseEstimate& p, const Graph& g, const Phase& phase, std::span<const Work> of_ops,
                        const Device& device, bool details, std::int64_t plans) {
  const RunTime t = run_time(g, phase, p.work, of_ops, plans, device);
  if (details)
    p.wall_range =
        wall_range(device, [&](Pace& pace, const Device& d) { run_phase(pace, g, phase, of_ops, plans, d); });
  p.gpu = p.work.time;
  p.wall = t.wall;
  p.graph = t.graph;
  p.bound = t.bound;
}

VLMEST_INLINE bool fits(InferenceEstimate& r, const Graph& g, const Timeline& timeline, const Device& device,
                        const allocator::AllocatorConfig& settings) {
  if (r.peak > device.usable_bytes) return false;
  if (!is_limited(settings, r.decode.memory.reserved, device)) return true;
  allocator::Process process(g, timeline, device.sm, within(device, settings));
  InferenceMemory limited;
  try {
    limited = replay_inference(g, process);
  } catch (const allocator::OutOfMemory&) {
    return false;
  }
  r.prefill.memory.reserved = limited.prefill.reserved;
  r.decode.memory.reserved = limited.decode.reserved;
  return true;
}

VLMEST_INLINE Bytes loaded_weights(const Vlm& vlm, const Plan& plan, const Device& device,
                                   const allocator::AllocatorConfig& settings) {
  Builder b;
  b.gpu = gpu_of(device);
  Context c{b, plan, stack_of(plan)};
  c.loads = true;
  declare_parameters(c, vlm);
  Timeline timeline;
  timeline.assign(b.graph);
  allocator::Process process(b.graph, timeline, device.sm, without_limit(device, settings));
  process.load();
  return process.weights();
}

VLMEST_INLINE InferenceEstimate of(const Graph& g, const Timeline& timeline, std::span<const Work> of_ops,
                                   const InferenceCaches& caches, std::int64_t kv, const Device& device,
                                   const allocator::AllocatorConfig& settings, bool details,
                                   std::vector<LayerRow>& rows) {
  InferenceEstimate r;
  allocator::Process process(g, timeline, device.sm, without_limit(device, settings));
  const InferenceMemory memory = replay_inference(g, process);
  r.prefill.memory = memory.prefill;
  r.decode.memory = memory.decode;
  r.weights = process.weights();
  const Phase &prefill = g.phases[0], &decode = g.phases[1];
  for (const auto& s : timeline.storages())
    if (s.role == Role::input && s.born <= prefill.first) r.inputs += s.bytes;
  r.decode.kv_len = kv;
  r.decode.work = work(g, decode.first, decode.last, of_ops);
  r.canvas = caches.canvas;
  r.steps = caches.steps;
  // A canvas's steps run over keys of one length.
  time(r.decode, g, decode, of_ops, device, details, r.canvas > 0 ? 0 : new_attention_plans(g, decode, kv));
  for (const auto& f : fft_buffers(g)) r.fft = std::max(r.fft, f.bytes);
  r.decode_is_peak = r.decode.memory.peak > r.prefill.memory.peak;
  const PhaseEstimate& top = r.decode_is_peak ? r.decode : r.prefill;
  r.peak = top.memory.peak;
  if (details) {
    for (PhaseEstimate* p : {&r.prefill, &r.decode}) {
      const std::vector<std::size_t> alive = alive_at_peak(timeline, p->memory);
      p->parts = peak_parts(timeline, alive, process, p->memory);
      if (p == &top) r.tensors = live_tensors(timeline, alive, process, p->memory);
    }
  }
  r.fits = fits(r, g, timeline, device, settings);
  std::vector<CacheBytes> kept;
  kept.reserve(caches.prefill.size());
  for (const auto& k : caches.prefill) {
    r.kv_cache += k.bytes;
    r.cache_states += k.states;
    if (k.fixed) r.cache_cross += k.bytes;
    kept.push_back({k.scope, k.bytes});
  }
  for (const auto& k : caches.decode) r.kv_cache_decoded += k.bytes;
  if (details) {
    rows = breakdown(g, timeline, kept, of_ops);
    for (const auto& row : rows) r.prefill.work += row.prefill;
  } else {
    r.prefill.work = total_work(g, prefill.first, prefill.last, of_ops);
  }
  time(r.prefill, g, prefill, of_ops, device, details);
  return r;
}

}  // namespace inference_estimate
}  // namespace vlmest
