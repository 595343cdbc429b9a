// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vlmest/analysis/peak.hpp>
#include <vlmest/report/comparison.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/measured_run.hpp>

namespace vlmest {

/// A quantity that rows measure.
struct Quantity {
  std::string_view name;
  Unit unit;
  bool wall = false;  ///< a clock on the host measured it, whose noise it holds
};

/// Every quantity that compare() knows of runs, in the order of reports. Each is the figure of that name, but
/// `prefill_above_weights`, which is prefill_peak less alloc_weights: weights are most of a peak and hide the rest; and
/// `fits`, 1 where the run did not end out of memory.
inline constexpr std::array run_quantities{Quantity{"params", Unit::count},
                                           Quantity{"image_tokens", Unit::count},
                                           Quantity{"seq", Unit::count},
                                           Quantity{"fits", Unit::count},
                                           Quantity{"input_bytes", Unit::bytes},
                                           Quantity{"kv_bytes", Unit::bytes},
                                           Quantity{"alloc_weights", Unit::bytes},
                                           Quantity{"prefill_flops", Unit::flops},
                                           Quantity{"decode_flops", Unit::flops},
                                           Quantity{"alloc_before_prefill", Unit::bytes},
                                           Quantity{"prefill_peak", Unit::bytes},
                                           Quantity{"prefill_above_weights", Unit::bytes},
                                           Quantity{"prefill_requested_peak", Unit::bytes},
                                           Quantity{"prefill_full_logits_peak", Unit::bytes},
                                           Quantity{"prefill_reserved", Unit::bytes},
                                           Quantity{"decode_peak", Unit::bytes},
                                           Quantity{"decode_peak_delta", Unit::bytes},
                                           Quantity{"prefill_kernels", Unit::count},
                                           Quantity{"decode_kernels", Unit::count},
                                           Quantity{"prefill_gpu_ms", Unit::milliseconds},
                                           Quantity{"decode_gpu_ms", Unit::milliseconds},
                                           Quantity{"decode_graph_ms", Unit::milliseconds},
                                           Quantity{"prefill_ms", Unit::milliseconds, true},
                                           Quantity{"decode_ms", Unit::milliseconds, true},
                                           Quantity{"trainable", Unit::count},
                                           Quantity{"optimizer_bytes", Unit::bytes},
                                           Quantity{"train_flops", Unit::flops},
                                           Quantity{"alloc_start", Unit::bytes},
                                           Quantity{"forward_peak", Unit::bytes},
                                           Quantity{"alloc_after_forward", Unit::bytes},
                                           Quantity{"backward_peak", Unit::bytes},
                                           Quantity{"step_peak", Unit::bytes},
                                           Quantity{"reserved_peak", Unit::bytes},
                                           Quantity{"step_kernels", Unit::count},
                                           Quantity{"step_gpu_ms", Unit::milliseconds},
                                           Quantity{"forward_gpu_ms", Unit::milliseconds},
                                           Quantity{"backward_gpu_ms", Unit::milliseconds},
                                           Quantity{"optimizer_gpu_ms", Unit::milliseconds},
                                           Quantity{"step_ms", Unit::milliseconds, true}};

constexpr bool is_wall_time(std::string_view quantity) {
  return std::any_of(run_quantities.begin(), run_quantities.end(),
                     [&](const Quantity& q) { return q.wall && q.name == quantity; });
}

/// What the recorded process held for others, out of `alloc_base`: the estimate is a fresh process's, which takes the
/// workspaces of the math libraries for this model; one that has run before already holds them, and the rest is not
/// this run's.
inline double held_for_others(const MeasuredRun& run, const std::vector<LiveTensor>& at_peak) {
  Bytes workspaces{};
  for (const LiveTensor& t : at_peak)
    if (t.tensor == none && t.node == none) workspaces += t.bytes;
  return std::max(0.0, run.figure("alloc_base").value_or(0) - static_cast<double>(workspaces.value()));
}

/// Everything that one run measured, beside its estimate.
class RunComparison {
 public:
  /// Throws Error where the run's plan asks for the impossible.
  RunComparison(const MeasuredRun& run, const Vlm& vlm, const Device& device, Estimator& estimator)
      : run_(run), name_(name(run)) {
    const Estimate e = estimator(vlm, run.plan, device, run.training ? Phases::train : Phases::inference);
    add("params", e.params.total().value());
    add("image_tokens", e.sequences.image_tokens);
    add("seq", e.sequences.seq);
    const bool fits = run.training ? e.training.fits : e.inference.fits;
    add("fits", fits ? 1 : 0, run.out_of_memory ? 0 : 1);
    others_ = held_for_others(run, run.training ? e.training.tensors : e.inference.tensors);
    if (run.training)
      training(e.training);
    else
      inference(e.inference, vlm, device, estimator);
  }

  std::vector<Comparison> take() { return std::move(out_); }

 private:
  void add(std::string_view quantity, double predicted, std::optional<double> measured) {
    if (!measured) return;
    const auto known = std::find_if(run_quantities.begin(), run_quantities.end(),
                                    [&](const Quantity& q) { return q.name == quantity; });
    out_.push_back({.row = name_,
                    .quantity = std::string(quantity),
                    .unit = known->unit,
                    .predicted = predicted,
                    .measured = *measured});
  }
  void add(std::string_view quantity, double predicted) { add(quantity, predicted, run_.figure(quantity)); }
  void add(std::string_view quantity, std::int64_t predicted) { add(quantity, static_cast<double>(predicted)); }
  void add(std::string_view quantity, Bytes predicted) { add(quantity, predicted.value()); }
  void wall(std::string_view quantity, Seconds predicted, const WallRange& range) {
    const std::size_t before = out_.size();
    add(quantity, predicted.ms(), run_.figure(quantity));
    if (out_.size() > before) out_.back().range = Range{range.low.ms(), range.high.ms()};
  }
  /// A figure of all that the process held.
  void held(std::string_view quantity, Bytes predicted) {
    add(quantity, static_cast<double>(predicted.value()), own(quantity));
  }
  std::optional<double> own(std::string_view quantity) const {
    auto all = run_.figure(quantity);
    if (all) *all -= others_;
    return all;
  }

  void inference(const InferenceEstimate& r, const Vlm& vlm, const Device& device, Estimator& estimator) {
    // What a process that ran other models holds lies in segments of theirs.
    const bool fresh = run_.figure("alloc_base").value_or(0) == 0;
    add("input_bytes", r.inputs);
    add("kv_bytes", r.kv_cache);
    if (fresh) add("alloc_weights", r.weights);
    add("prefill_flops", r.prefill.work.flops.value());
    add("decode_flops", r.decode.work.flops.value());
    if (fresh) add("alloc_before_prefill", r.prefill.memory.before);
    held("prefill_peak", r.prefill.memory.peak);
    if (const auto peak = own("prefill_peak"), weights = run_.figure("alloc_weights"); peak && weights)
      add("prefill_above_weights", static_cast<double>((r.prefill.memory.peak - r.weights).value()), *peak - *weights);
    if (run_.figure("prefill_requested_peak")) add("prefill_requested_peak", requested(r, estimator.graph()));
    if (fresh) add("prefill_reserved", r.prefill.memory.reserved);
    held("decode_peak", r.decode.memory.peak);
    add("decode_peak_delta", r.decode.memory.peak - r.decode.memory.before);
    add("prefill_kernels", r.prefill.work.kernels);
    add("decode_kernels", r.decode.work.kernels);
    add("prefill_gpu_ms", r.prefill.gpu.ms());
    add("decode_gpu_ms", r.decode.gpu.ms());
    add("decode_graph_ms", r.decode.graph.ms());
    wall("prefill_ms", r.prefill.wall, r.prefill.wall_range);
    wall("decode_ms", r.decode.wall, r.decode.wall_range);
    if (run_.figure("prefill_full_logits_peak") && run_.plan.logits == Logits::last) {
      Plan plan = run_.plan;
      plan.logits = Logits::all;
      held("prefill_full_logits_peak", estimator(vlm, plan, device).inference.prefill.memory.peak);
    }
  }
  /// Without the allocator's rounding.
  static Bytes requested(const InferenceEstimate& r, const Graph& g) {
    const Phase& prefill = g.phases.front();
    Bytes all = requested_peak(g, prefill.first, prefill.last).bytes;
    for (const LiveTensor& t : r.tensors)
      if (t.tensor == none && t.node == none) all += t.bytes;
    return all;
  }

  void training(const TrainingEstimate& e) {
    add("trainable", e.trainable.value());
    add("optimizer_bytes", e.optimizer);
    add("train_flops", e.work.flops.value());
    held("alloc_start", e.forward.before);
    held("forward_peak", e.forward.peak);
    held("alloc_after_forward", e.forward_end);
    held("backward_peak", e.backward.peak);
    held("step_peak", e.step.peak);
    held("reserved_peak", run_.cache_emptied ? e.reserved : e.reserved_in_two_steps);
    add("step_kernels", e.work.kernels);
    add("step_gpu_ms", e.gpu.ms());
    add("forward_gpu_ms", e.forward_work.time.ms() * static_cast<double>(e.micro_batches));
    add("backward_gpu_ms", e.backward_work.time.ms() * static_cast<double>(e.micro_batches));
    add("optimizer_gpu_ms", e.step_work.time.ms());
    wall("step_ms", e.wall, e.wall_range);
  }

  const MeasuredRun& run_;
  std::string name_;
  double others_ = 0;
  std::vector<Comparison> out_;
};

/// The model of a run whose row does not say how its pictures were cut but counts their tokens: Idefics3's pictures are
/// whole where that count is the one of whole pictures alone.
Vlm as_counted(Vlm vlm, const MeasuredRun& run);

inline std::vector<Comparison> compare(const MeasuredRun& run, const Vlm& vlm, const Device& device,
                                       Estimator& estimator) {
  return RunComparison(run, as_counted(vlm, run), device, estimator).take();
}

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/compare_run.hpp>
#endif
