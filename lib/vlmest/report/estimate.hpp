// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/allocator/process.hpp>
#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/analysis/optimizer_states.hpp>
#include <vlmest/analysis/params.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/live_tensor.hpp>

namespace vlmest {

/// A phase of inference.
struct PhaseEstimate {
  allocator::PhaseMemory memory;
  Work work;
  std::int64_t kv_len = 0;
  Seconds gpu{};   ///< sum of kernel times
  Seconds wall{};  ///< the larger of that and the host's launches, one after the other
  Bound bound = Bound::compute;
};

struct InferenceEstimate {
  Bytes weights{};  ///< parameters and buffers as the allocator holds them
  Bytes inputs{};
  Bytes kv_cache{};          ///< keys and values after the prefill
  Bytes kv_cache_decoded{};  ///< the same when new_tokens have been decoded
  Bytes fft{};               ///< most that a spectral block holds at one time: spectra, fp32 copies, work area
  PhaseEstimate prefill;
  PhaseEstimate decode;
  bool decode_is_peak = false;
  Bytes peak{};
  std::vector<LiveTensor> tensors;  ///< at the higher of the two peaks, by bytes; they add up to `peak`
  bool fits = false;

  double tokens_per_second(std::int64_t batch) const {
    return decode.wall.value > 0 ? static_cast<double>(batch) / decode.wall.value : 0.0;
  }
};

/// States that training adds, per optimizer.
struct TrainingStates {
  Elements trainable{};
  Bytes weights{}, gradients{}, optimizer{};
};

struct Estimate {
  Parameters params;
  Sequences sequences;
  InferenceEstimate inference;
  TrainingStates training;
  std::vector<LayerRow> layers;
};

/// Makes estimates; keeps its memory between them.
class Estimator {
 public:
  /// What a run of `plan` takes on `device`. Throws Error where the plan asks for the impossible.
  Estimate operator()(const Vlm& vlm, Plan plan, const Device& device) {
    plan.compute_capability = device.sm;
    plan.multiprocessors = device.multiprocessors;
    Estimate e;
    e.sequences = make_sequences(vlm, plan);
    const std::int64_t kv = checked_add(e.sequences.seq, std::max<std::int64_t>(plan.new_tokens, 1));
    builder_.clear();
    Context c{builder_, plan};
    const InferenceCaches caches = build_inference(c, vlm, e.sequences, kv);
    const Graph& g = builder_.graph;
    e.params = parameters(g);
    timeline_.assign(g);
    const std::vector<Work> of_ops = op_works(g, device);
    inference(e.inference, g, timeline_, of_ops, kv, device);
    e.inference.fits = fits(e.inference, g, timeline_, device);
    states(e.training, g, plan);
    std::vector<CacheBytes> kept;
    for (const auto& k : caches.prefill) {
      e.inference.kv_cache += k.bytes;
      kept.push_back({k.scope, k.bytes});
    }
    for (const auto& k : caches.decode) e.inference.kv_cache_decoded += k.bytes;
    e.layers = breakdown(g, timeline_, kept, of_ops);
    for (const auto& row : e.layers) e.inference.prefill.work += row.prefill;
    time(e.inference.prefill, device);
    return e;
  }
  const Graph& graph() const { return builder_.graph; }

 private:
  static void time(PhaseEstimate& p, const Device& device) {
    p.gpu = p.work.time;
    const Seconds host = device.launch * static_cast<double>(p.work.kernels);
    p.wall = std::max(p.gpu, host);
    p.bound = host > p.gpu ? Bound::launch : bound(p.work);
  }

  static void inference(InferenceEstimate& r, const Graph& g, const Timeline& timeline, std::span<const Work> of_ops,
                        std::int64_t kv, const Device& device) {
    allocator::Process process(g, timeline, device.sm);
    run(r, g, process);
    r.weights = process.weights();
    const Phase& prefill = g.phases[0];
    const Phase& decode = g.phases[1];
    for (const auto& s : timeline.storages())
      if (s.role == Role::input && s.born <= prefill.first) r.inputs += s.bytes;
    r.decode.kv_len = kv;
    r.decode.work = work(g, decode.first, decode.last, of_ops);
    time(r.decode, device);
    for (const auto& f : fft_buffers(g)) r.fft = std::max(r.fft, f.bytes);
    r.decode_is_peak = r.decode.memory.peak > r.prefill.memory.peak;
    const PhaseEstimate& top = r.decode_is_peak ? r.decode : r.prefill;
    r.peak = top.memory.peak;
    list(r, timeline, process, top.memory);
  }

  /// The first call warms the allocator and the libraries up; the second is what runs from then on, and decode follows.
  static void run(InferenceEstimate& r, const Graph& g, allocator::Process& process) {
    process.load();
    process.run(g.phases[0]);
    process.drop();
    r.prefill.memory = process.run(g.phases[0]);
    process.keep();
    r.decode.memory = process.run(g.phases[1]);
  }

  /// Whether it runs in the device's memory. Where what is reserved would not, the allocator gives its cache back and
  /// tries again, so the phases are replayed within that memory; what is reserved then is what the device shows.
  static bool fits(InferenceEstimate& r, const Graph& g, const Timeline& timeline, const Device& device) {
    if (r.peak > device.usable_bytes) return false;
    if (r.decode.memory.reserved <= device.usable_bytes) return true;
    allocator::AllocatorConfig config;
    config.capacity = device.usable_bytes;
    allocator::Process process(g, timeline, device.sm, config);
    InferenceEstimate within;
    try {
      run(within, g, process);
    } catch (const allocator::OutOfMemory&) {
      return false;
    }
    r.prefill.memory.reserved = within.prefill.memory.reserved;
    r.decode.memory.reserved = within.decode.memory.reserved;
    return true;
  }

  /// Everything alive at the peak, sorted by bytes.
  static void list(InferenceEstimate& r, const Timeline& timeline, const allocator::Process& process,
                   const allocator::PhaseMemory& m) {
    const auto storages = timeline.storages();
    for (std::size_t i = 0; i < storages.size() && storages[i].born <= m.node; ++i) {
      const Storage& s = storages[i];
      if (s.dies != none && s.dies <= m.node) continue;
      if (const Bytes bytes = process.occupied(i); bytes > Bytes{}) r.tensors.push_back({s.tensor, "", none, bytes});
    }
    if (process.library_workspaces() > Bytes{})
      r.tensors.push_back({none, "cuBLAS workspaces", none, process.library_workspaces()});
    if (m.scratch > Bytes{}) r.tensors.push_back({none, "scratch", m.node, m.scratch});
    std::sort(r.tensors.begin(), r.tensors.end(), [](const LiveTensor& a, const LiveTensor& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.tensor < b.tensor;
    });
  }

  /// Weights, gradients and optimizer states of full or partly frozen training.
  static void states(TrainingStates& s, const Graph& g, const Plan& plan) {
    for (const auto& t : g.loaded()) {
      if (t.role != Role::weight) continue;
      s.weights += requested_bytes(t);
      if (!trains(plan.trainable, g.scopes[static_cast<std::size_t>(t.scope)].part)) continue;
      s.trainable += t.storage;
      s.gradients += requested_bytes(t);
      s.optimizer += optimizer_bytes(plan.optimizer, t);
    }
  }
  static bool trains(const Trainable& w, Part p) {
    return p == Part::vision ? w.vision : p == Part::language ? w.language : w.projector;
  }

  Builder builder_;
  Timeline timeline_;
};

}  // namespace vlmest
