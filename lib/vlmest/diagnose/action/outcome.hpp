// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/diagnose/action/link.hpp>
#include <vlmest/diagnose/action/placed_time.hpp>
#include <vlmest/diagnose/gathered.hpp>
#include <vlmest/diagnose/placement.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::diagnose {

namespace outcome {

inline Outcome of(const InferenceEstimate& e, const Plan& plan) {
  return {.peak = e.peak,
          .peaks = {e.prefill.memory.peak, e.decode.memory.peak},
          .reserved = std::max(e.prefill.memory.reserved, e.decode.memory.reserved),
          .time = e.prefill.wall + e.decode.wall * static_cast<double>(plan.new_tokens),
          .samples = plan.batch,
          .fits = e.fits};
}
inline Outcome of(const TrainingEstimate& e, const Plan& plan) {
  return {.peak = e.peak,
          .peaks = {e.forward.peak, e.backward.peak, e.step.peak},
          .reserved = e.reserved,
          .time = e.wall,
          .samples = checked_mul(plan.batch, plan.gradient_accumulation),
          .fits = e.fits};
}

/// The device with less memory, for what a replay of the graph does not see.
inline Device without(Device d, Bytes taken) {
  d.usable_bytes = std::max(Bytes{}, d.usable_bytes - taken);
  return d;
}
inline void add(Outcome& o, Bytes taken) {
  o.peak += taken;
  for (Bytes& p : o.peaks) p += taken;
  o.reserved += taken;
}

/// Weights on the host, copied for each module as it runs and dropped behind it (accelerate's cpu_offload): the largest
/// module's are here at once, and every forward waits for all of them.
inline Outcome offloaded_inference(const Settings& s, const Device& device, Estimator& estimator) {
  Estimate e = estimator(s.vlm, s.plan, device, Phases::inference);
  const Graph& g = estimator.graph();
  const WeightBytes u = weight_bytes(g);
  const Timeline timeline = keep(g, estimator.timeline(), shares(s.placement), false);
  allocator::Process process(g, timeline, device.sm, without_limit(device, s.allocator));
  const InferenceMemory memory = replay_inference(g, process);
  InferenceEstimate& r = e.inference;
  r.prefill.memory = memory.prefill;
  r.decode.memory = memory.decode;
  r.decode_is_peak = memory.decode.peak > memory.prefill.peak;
  r.peak = std::max(memory.decode.peak, memory.prefill.peak);
  r.fits = inference_estimate::fits(r, g, timeline, without(device, u.module), s.allocator);
  const Seconds copies = u.all / host_link(device);
  r.prefill.wall += copies;
  r.decode.wall += copies;
  Outcome o = of(r, s.plan);
  add(o, u.module);
  return o;
}

/// A training step: its time, and its memory where `wanted(outcome)` of that alone is true.
template <class Wanted>
Outcome training(const Settings& s, const Device& device, Estimator& estimator, Wanted&& wanted) {
  TrainingEstimate e = estimator.training_work(s.vlm, s.plan, device);
  const Graph& g = estimator.training_graph();
  const bool placed = s.placement != Placement{};
  const auto trained = [&](const Tensor& t) { return trains(s.plan, g, t); };
  Outcome timed = of(e, s.plan);
  if (placed) timed.time = placed_time(s.placement, e, g, trained, device);
  if (!wanted(timed)) return timed;
  if (placed) {
    Timeline timeline = keep(g, estimator.training_timeline(), shares(s.placement), true);
    timeline.add(data_parallel_storages(g, s.placement, trained));
    training_estimate::add_memory(e, g, timeline, device, s.allocator, false);
  } else {
    training_estimate::add_memory(e, g, estimator.training_timeline(), device, s.allocator, false);
  }
  Outcome o = of(e, s.plan);
  o.time = timed.time;
  return o;
}

}  // namespace outcome

/// The batches of settings that group images by size: one with images of each size, in the order of the sizes.
inline std::vector<Settings> size_groups(const Settings& s) {
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

inline Outcome evaluate(const Settings& s, const Device& device, Mode mode, Estimator& estimator);

namespace outcome {

/// Batches with images of one size each.
inline Outcome grouped(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
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

/// What `s` takes on `device`. The estimator's allocator and details are changed. Of a training step whose time alone,
/// in an outcome that does not fit, `wanted` refuses, no memory is estimated. Throws Error where the settings ask for
/// the impossible.
template <class Wanted>
Outcome evaluate(const Settings& s, const Device& device, Mode mode, Estimator& estimator, Wanted&& wanted) {
  if (s.grouped_by_size) return outcome::grouped(s, device, mode, estimator);
  estimator.allocator = s.allocator;
  estimator.details = false;
  const Placement& p = s.placement;
  if (p.gpus < 1 || p.gpus > 1024) throw Error("--gpus", std::to_string(p.gpus) + " is out of range", "give 1 to 1024");
  if (mode == Mode::training) return outcome::training(s, device, estimator, wanted);
  if (p.offload == Offload::parameters) return outcome::offloaded_inference(s, device, estimator);
  return outcome::of(estimator(s.vlm, s.plan, device, Phases::inference).inference, s.plan);
}
inline Outcome evaluate(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
  return evaluate(s, device, mode, estimator, [](const Outcome&) { return true; });
}

/// Of settings that group images by size the batch that needs most memory; others as they are.
inline Settings largest_group(const Settings& s, const Device& device, Mode mode, Estimator& estimator) {
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
