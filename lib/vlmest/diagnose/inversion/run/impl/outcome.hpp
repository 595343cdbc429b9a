// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/diagnose/inversion/run/outcome.hpp>
#include <vlmest/parallel/link.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::diagnose {
namespace outcome {

VLMEST_INLINE Outcome of(const InferenceEstimate& e, const Plan& plan) {
  return {.peak = e.peak,
          .peaks = {e.prefill.memory.peak, e.decode.memory.peak},
          .reserved = std::max(e.prefill.memory.reserved, e.decode.memory.reserved),
          .time = e.prefill.wall + e.decode.wall * static_cast<double>(plan.new_tokens),
          .samples = plan.batch,
          .fits = e.fits};
}

VLMEST_INLINE Outcome of(const TrainingEstimate& e, const Plan& plan) {
  return {.peak = e.peak,
          .peaks = {e.forward.peak, e.backward.peak, e.step.peak},
          .reserved = e.reserved,
          .time = e.wall,
          .samples = checked_mul(plan.batch, plan.gradient_accumulation),
          .fits = e.fits};
}

VLMEST_INLINE Outcome offloaded_inference(const Settings& s, const Device& device, Estimator& estimator) {
  Estimate e = estimator(s.vlm, s.plan, device, Phases::inference);
  const Graph& g = estimator.graph();
  const parallel::WeightBytes u = parallel::weight_bytes(g);
  const Timeline timeline = parallel::keep(g, estimator.timeline(), parallel::shares(s.placement), false);
  allocator::Process process(g, timeline, device.sm, without_limit(device, s.allocator));
  const InferenceMemory memory = replay_inference(g, process);
  InferenceEstimate& r = e.inference;
  r.prefill.memory = memory.prefill;
  r.decode.memory = memory.decode;
  r.decode_is_peak = memory.decode.peak > memory.prefill.peak;
  r.peak = std::max(memory.decode.peak, memory.prefill.peak);
  r.fits = inference_estimate::fits(r, g, timeline, without(device, u.module), s.allocator);
  const Seconds copies = u.all / parallel::host_link(device);
  r.prefill.wall += copies;
  r.decode.wall += copies;
  Outcome o = of(r, s.plan);
  add(o, u.module);
  return o;
}

}  // namespace outcome

VLMEST_INLINE std::vector<Settings> size_groups(const Settings& s) {
  std::vector<Settings> r;
  for (std::size_t i = 0; i <= s.plan.more_sizes.size(); ++i) {
    Settings& one = r.emplace_back(s);
    one.grouped_by_size = false;
    one.plan.more_sizes.clear();
    if (i == 0) continue;
    one.plan.image_height = s.plan.more_sizes[i - 1].height;
    one.plan.image_width = s.plan.more_sizes[i - 1].width;
  }
  return r;
}

namespace outcome {

VLMEST_INLINE Outcome grouped(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
  const std::vector<Settings> groups = size_groups(s);
  const auto sizes = static_cast<std::int64_t>(groups.size());
  Outcome r{.fits = true};
  for (std::int64_t i = 0; i < sizes; ++i) {
    const Outcome o = evaluate(groups[static_cast<std::size_t>(i)], device, mode, estimator);
    // Sequences i, i + sizes, … of the batch have this size.
    const auto share = static_cast<double>((s.plan.batch - i + sizes - 1) / sizes) / static_cast<double>(s.plan.batch);
    r.peak = std::max(r.peak, o.peak);
    for (std::size_t k = 0; k < r.peaks.size(); ++k) r.peaks[k] = std::max(r.peaks[k], o.peaks[k]);
    r.reserved = std::max(r.reserved, o.reserved);
    r.time = r.time + o.time * share;
    r.samples = o.samples;
    r.fits = r.fits && o.fits;
  }
  return r;
}

}  // namespace outcome

VLMEST_INLINE Settings largest_group(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
  if (!s.grouped_by_size) return s;
  std::vector<Settings> groups = size_groups(s);
  std::size_t most = 0;
  Bytes peak{};
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (const Bytes n = evaluate(groups[i], device, mode, estimator).peak; n > peak) {
      peak = n;
      most = i;
    }
  return std::move(groups[most]);
}

}  // namespace vlmest::diagnose
