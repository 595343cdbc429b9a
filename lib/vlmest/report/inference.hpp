// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/allocator/replay.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/report/breakdown.hpp>
#include <vlmest/report/live_tensor.hpp>
#include <vlmest/report/peak_parts.hpp>
#include <vlmest/report/run_time.hpp>

namespace vlmest {

/// A phase of inference.
struct PhaseEstimate {
  allocator::PhaseMemory memory;
  PeakParts parts;  ///< of its peak; empty without details
  Work work;
  std::int64_t kv_len = 0;
  Seconds gpu{};         ///< sum of kernel times
  Seconds wall{};        ///< the larger of that with its gaps and the host's launches, one after the other
  WallRange wall_range;  ///< between which times it lies, as hosts and kernels differ; none without details
  Seconds graph{};       ///< the phase replayed as a CUDA graph
  Bound bound = Bound::compute;
};

struct InferenceEstimate {
  Bytes weights{};  ///< parameters and buffers as the allocator holds them once they are loaded
  Bytes inputs{};
  Bytes kv_cache{};          ///< keys and values after the prefill, with the states of linear attention
  Bytes cache_states{};      ///< of those, the states, which do not grow with the sequence
  Bytes cache_cross{};       ///< of those, keys and values of cross-attention, which do not grow by decoding
  Bytes kv_cache_decoded{};  ///< the same when new_tokens have been decoded
  Bytes fft{};               ///< most that a spectral block holds at one time: spectra, fp32 copies, work area
  PhaseEstimate prefill;
  PhaseEstimate decode;
  bool decode_is_peak = false;
  constexpr PhaseKind peak_phase() const { return decode_is_peak ? PhaseKind::decode : PhaseKind::prefill; }
  Bytes peak{};
  std::vector<LiveTensor> tensors;  ///< at the higher of the two peaks, by bytes; they add up to `peak`
  bool fits = false;

  std::int64_t canvas = 0;  ///< tokens that a decode step denoises at once; 0: it adds one token
  std::int64_t steps = 1;   ///< decode steps that a canvas takes

  /// New tokens of each sequence in a decode step.
  double tokens_per_step() const { return canvas > 0 ? static_cast<double>(canvas) / static_cast<double>(steps) : 1.0; }
  double tokens_per_second(std::int64_t batch) const {
    return decode.wall.value > 0 ? tokens_per_step() * static_cast<double>(batch) / decode.wall.value : 0.0;
  }
};

namespace inference_estimate {

void time(PhaseEstimate& p, const Graph& g, const Phase& phase, std::span<const Work> of_ops, const Device& device,
          bool details, std::int64_t plans = 0);

/// Whether it runs in the device's memory. Where what is reserved would not, the allocator gives its cache back and
/// tries again, so the phases are replayed within that memory; what is reserved then is what the device shows.
bool fits(InferenceEstimate& r, const Graph& g, const Timeline& timeline, const Device& device,
          const allocator::AllocatorConfig& settings);

/// What a checkpoint takes once it is loaded, before the first forward unpacks its weights.
Bytes loaded_weights(const Vlm& vlm, const Plan& plan, const Device& device,
                     const allocator::AllocatorConfig& settings);

/// The estimate of a built graph with these caches; `rows` receives its layers.
InferenceEstimate of(const Graph& g, const Timeline& timeline, std::span<const Work> of_ops,
                     const InferenceCaches& caches, std::int64_t kv, const Device& device,
                     const allocator::AllocatorConfig& settings, bool details, std::vector<LayerRow>& rows);

}  // namespace inference_estimate
}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/inference.hpp>
#endif
