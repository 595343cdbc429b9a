// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/device/flash_attention.hpp>
#include <vlmest/nn/inference.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/transform/training_step.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE Estimate Estimator::operator()(const Vlm& vlm, const Plan& plan, const Device& device, Phases phases) {
  Estimate e;
  if (has_inference(phases)) infer(e, vlm, plan, device);
  if (has_training(phases)) train(e, vlm, plan, device, has_inference(phases));
  return e;
}

VLMEST_INLINE void Estimator::infer(Estimate& e, const Vlm& vlm, const Plan& asked, const Device& device) {
  expect_runnable(asked, device);
  Plan plan = asked;
  plan.lora.rank = 0;
  if (plan.amp) plan.dtype = DType::fp32;
  e.sequences = make_sequences(vlm, plan);
  const std::int64_t kv = checked_add(e.sequences.seq, std::max<std::int64_t>(plan.new_tokens, 1));
  Built& built = inference_;
  built.builder.clear();
  built.builder.gpu = gpu_of(device);
  Context c{built.builder, plan, stack_of(plan)};
  const InferenceCaches caches = build_inference(c, vlm, e.sequences, kv);
  const Graph& g = built.analyse(device);
  e.params = parameters(g);
  training_.builder.gpu = gpu_of(device);
  e.trainable =
      asked.lora.rank > 0 ? trainable_parameters(training_.builder, vlm, asked) : trainable_parameters(g, plan);
  e.inference = inference_estimate::of(g, built.timeline, built.of_ops, caches, caches.decode_kv, device, allocator,
                                       details, e.layers);
  if (const Quantization* q = quantization_of(vlm, plan, traits_of(plan.runtime), gpu_of(device));
      q && q->unpacked_by_transformers)
    e.inference.weights = inference_estimate::loaded_weights(vlm, plan, device, allocator);
}

VLMEST_INLINE void Estimator::train(Estimate& e, const Vlm& vlm, const Plan& plan, const Device& device, bool further) {
  expect_runnable(plan, device);
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

VLMEST_INLINE TrainingEstimate Estimator::training_work(const Vlm& vlm, const Plan& plan, const Device& device) {
  expect_runnable(plan, device);
  const Graph& g = record_training(vlm, plan, make_sequences(vlm, plan), device);
  TrainingEstimate e;
  std::vector<LayerRow> rows;
  training_estimate::add_work(e, g, training_.timeline, training_.of_ops, plan, device, false, rows);
  return e;
}

VLMEST_INLINE const Graph& Estimator::record_training(const Vlm& vlm, const Plan& plan, const Sequences& s,
                                                      const Device& device) {
  training_.builder.clear();
  training_.builder.gpu = gpu_of(device);
  Context c{training_.builder, plan, stack_of(plan)};
  build_training(c, vlm, s);
  return training_.analyse(device);
}

VLMEST_INLINE const Graph& Estimator::Built::analyse(const Device& device) {
  timeline.assign(builder.graph);
  op_works(builder.graph, device, of_ops);
  return builder.graph;
}

}  // namespace vlmest
