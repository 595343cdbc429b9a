// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/analysis/params.hpp>
#include <vlmest/device/flash_attention.hpp>
#include <vlmest/report/inference.hpp>
#include <vlmest/report/training.hpp>

namespace vlmest {

/// What to estimate: a prefill with a decode step, a training step, or both.
enum class Phases : std::uint8_t { inference, train, all };
constexpr bool has_inference(Phases p) { return p != Phases::train; }
constexpr bool has_training(Phases p) { return p != Phases::inference; }

struct Estimate {
  Parameters params;     ///< of the model itself, without adapters
  Elements trainable{};  ///< those that train, or the adapters'
  Sequences sequences;
  InferenceEstimate inference;  ///< empty where it was not asked for, as `training`
  TrainingEstimate training;
  std::vector<LayerRow> layers;
};

/// Makes estimates; keeps its memory between them.
class Estimator {
 public:
  /// The allocator's settings, torch's defaults; from the text of PYTORCH_ALLOC_CONF: allocator/config_text.hpp. Its
  /// capacity and total memory are the device's.
  allocator::AllocatorConfig allocator;
  /// Layers, and the tensors of the peak. A planner that tries thousands of settings does without, and asks for those
  /// of the one that it chooses.
  bool details = true;

  /// What a run of `plan` takes on `device`. Throws Error where the plan asks for the impossible.
  Estimate operator()(const Vlm& vlm, const Plan& plan, const Device& device, Phases phases = Phases::inference) {
    Estimate e;
    if (has_inference(phases)) infer(e, vlm, plan, device);
    if (has_training(phases)) train(e, vlm, plan, device, has_inference(phases));
    return e;
  }

  /// Fills the estimate's inference part. Adapters count as merged into the weights; autocast's weights are fp32.
  void infer(Estimate& e, const Vlm& vlm, const Plan& asked, const Device& device) {
    Plan plan = on(device, asked);
    plan.lora.rank = 0;
    if (plan.amp) plan.dtype = DType::fp32;
    e.sequences = make_sequences(vlm, plan);
    const std::int64_t kv = checked_add(e.sequences.seq, std::max<std::int64_t>(plan.new_tokens, 1));
    Built& built = inference_;
    built.builder.clear();
    Context c{built.builder, plan};
    const InferenceCaches caches = build_inference(c, vlm, e.sequences, kv);
    const Graph& g = built.analyse(device);
    e.params = parameters(g);
    e.trainable =
        asked.lora.rank > 0 ? trainable_parameters(training_.builder, vlm, asked) : trainable_parameters(g, plan);
    e.inference =
        inference_estimate::of(g, built.timeline, built.of_ops, caches, kv, device, allocator, details, e.layers);
    if (const Quantization* q = quantization_of(vlm, plan); q && q->unpacked_by_transformers)
      e.inference.weights = inference_estimate::loaded_weights(vlm, plan, device, allocator);
  }

  /// Fills the estimate's training part; `further` says that inference's is there and stays.
  void train(Estimate& e, const Vlm& vlm, const Plan& asked, const Device& device, bool further = false) {
    const Plan plan = on(device, asked);
    if (!further) e.sequences = make_sequences(vlm, plan);
    const Graph& g = record_training(vlm, plan, e.sequences, device);
    const Built& built = training_;
    std::vector<LayerRow> rows;
    e.training = training_estimate::of(g, built.timeline, built.of_ops, plan, device, allocator, details, rows);
    e.trainable = e.training.trainable;
    if (further) {
      add_training(e.layers, inference_.builder.graph, rows, g);
    } else {
      e.params = parameters_without_adapters(g);
      e.layers = std::move(rows);
    }
  }

  /// The training part without what a replay on the allocator tells: of states that are divided, which change no op,
  /// the memory is asked for apart (training_estimate::add_memory).
  TrainingEstimate training_work(const Vlm& vlm, const Plan& asked, const Device& device) {
    const Plan plan = on(device, asked);
    const Graph& g = record_training(vlm, plan, make_sequences(vlm, plan), device);
    TrainingEstimate e;
    std::vector<LayerRow> rows;
    training_estimate::add_work(e, g, training_.timeline, training_.of_ops, plan, device, false, rows);
    return e;
  }

  /// The graphs and lifetimes behind the estimate made last.
  const Graph& graph() const { return inference_.builder.graph; }
  const Timeline& timeline() const { return inference_.timeline; }
  const Graph& training_graph() const { return training_.builder.graph; }
  const Timeline& training_timeline() const { return training_.timeline; }

 private:
  struct Built {
    Builder builder;
    Timeline timeline;
    std::vector<Work> of_ops;
    const Graph& analyse(const Device& device) {
      timeline.assign(builder.graph);
      of_ops.clear();
      of_ops.reserve(builder.graph.ops.size());
      for (const Op& op : builder.graph.ops) of_ops.push_back(work(op, device));
      return builder.graph;
    }
  };

  const Graph& record_training(const Vlm& vlm, const Plan& plan, const Sequences& s, const Device& device) {
    training_.builder.clear();
    Context c{training_.builder, plan};
    build_training(c, vlm, s);
    return training_.analyse(device);
  }

  static Plan on(const Device& device, Plan plan) {
    expect_runnable(plan, device);
    plan.compute_capability = device.sm;
    plan.multiprocessors = device.multiprocessors;
    return plan;
  }

  Built inference_, training_;
};

}  // namespace vlmest
