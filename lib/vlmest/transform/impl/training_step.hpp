// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/nn/block.hpp>
#include <vlmest/nn/divided_step.hpp>
#include <vlmest/nn/parameter_order.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/sharded_model.hpp>
#include <vlmest/nn/trainable.hpp>
#include <vlmest/transform/optimizer.hpp>
#include <vlmest/transform/training_step.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

namespace training_step {

/// fully_shard casts every parameter that it gathers to one type, those too that transformers keeps in fp32: modules
/// that ask for the type of their weights then run otherwise than the graph of that type says.
inline void check_gathered(const Plan& plan, const Graph& g, TensorId parameters) {
  for (TensorId t = 0; t < parameters; ++t)
    if (const Tensor& x = g.tensor(t); x.role == Role::weight && x.dtype != plan.dtype)
      throw Error("layout.param_dtype",
                  "how " + path(g, x.scope) + " runs, which a model of " + std::string(name(plan.dtype)) + " has in " +
                      std::string(name(x.dtype)) + ", is not modelled where all weights are gathered in one type",
                  "leave it out");
}

/// The optimizer's parameters and gradients are the parts that a rank keeps, of the type that they are kept in, while
/// it lives.
class Kept {
 public:
  Kept(Graph& g, std::vector<TensorId> tensors, DType gathered)
      : g_(g), tensors_(std::move(tensors)), gathered_(gathered) {
    set(*g_.kept_dtype);
  }
  ~Kept() { set(gathered_); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  void set(DType type) {
    for (const TensorId t : tensors_) g_.tensors[static_cast<std::size_t>(t)].dtype = type;
  }

  Graph& g_;
  std::vector<TensorId> tensors_;
  DType gathered_;
};

}  // namespace training_step

VLMEST_INLINE void build_training(Context& asked, const Family& family, const Sequences& s,
                                  const std::vector<BlockConfig>& added) {
  Plan plan = asked.plan;
  if (plan.gradient_accumulation < 1)
    throw Error("plan.gradient_accumulation",
                "a step of " + std::to_string(plan.gradient_accumulation) + " micro-batches", "give at least 1");
  plan.dropout = true;  // model.train()
  if (plan.amp) plan.dtype = DType::fp32;
  if (plan.param_dtype) asked.b.graph.kept_dtype = std::exchange(plan.dtype, *plan.param_dtype);
  Context c{asked.b, plan, asked.runtime, asked.blocks};
  c.routed_rows = asked.routed_rows;
  c.quantization = asked.quantization;
  c.sharding = asked.sharding;
  c.padded = s.padded();
  Adapters adapters;
  InputGradients input_gradients;
  if (plan.lora.rank > 0) c.adapters = &adapters;
  if (wants_input_gradients(plan)) c.input_gradients = &input_gradients;
  check_stored_weights(plan, c.quantization);
  const FamilyModel model = family.make_model(c);
  Blocks blocks;
  if (!added.empty()) {
    blocks = make_blocks(c, added);
    c.blocks = &blocks;
  }
  declare_adapters(c);
  const auto parameters = static_cast<TensorId>(c.b.graph.tensors.size());
  if (plan.param_dtype) training_step::check_gathered(plan, c.b.graph, parameters);
  bool any = false;
  for (TensorId t = 0; t < parameters; ++t)
    if (trains(plan, c.b.graph, c.b.graph.tensor(t))) {
      c.b.require_grad(t);
      any = true;
    }
  if (!any) throw Error("training", "no parameter is trained", "unfreeze a part of the model");
  Value labels;
  c.labels = &labels;  // says to make_inputs that this is training
  const FamilyInputs inputs = family.make_inputs(c, s);
  labels = *inputs.labels;
  std::optional<DividedSequence> sequence = divided_sequence(c, s);
  if (sequence) c.sequence = &*sequence;
  Cache cache = family.make_cache();
  for (auto& l : cache.layers) l.off = true;
  if (plan.checkpointed.language) c.b.checkpointing = checkpoint(plan.checkpointing);
  if (plan.checkpointed.vision) c.b.vision_checkpointing = checkpoint(plan.checkpointing);
  c.b.graph.script = c.scripts().training;
  c.b.graph.loop = c.scripts().training_loop;
  Value loss;  // a variable of the loop: the last micro-batch's stays until the next one's takes its place
  const std::int64_t micro_batches = std::min<std::int64_t>(plan.gradient_accumulation, 2);
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    c.b.enable_grad(true);
    c.b.begin_phase(PhaseKind::forward);
    {
      std::optional<Autocast> amp;  // the loss is computed in it too, the backward is not
      if (plan.amp) amp.emplace(c.b, DType::bf16);
      loss = model.prefill(c, inputs, s, cache);
    }
    if (sequence) check_ran(*sequence);
    if (plan.gradient_accumulation > 1) loss = eager::div_scalar(std::move(loss));
    c.b.end_phase();
    c.b.begin_phase(PhaseKind::backward, 1);
    {
      Value seed = eager::fill(c.b, "ones_like", Shape{}, loss.dtype());
      BackwardEngine engine;
      engine.run(loss, seed);
    }
    c.b.end_phase();
    for (const Value& v : input_gradients.leaves) c.b.gradients.of(v.id()).reset();
    input_gradients.leaves.clear();
    c.b.enable_grad(false);
  }
  loss.reset();
  c.b.begin_phase(PhaseKind::step);
  std::optional<training_step::Kept> kept;
  if (plan.param_dtype) {
    std::vector<TensorId> tensors;
    for (TensorId t = 0; t < parameters; ++t)
      if (c.b.gradients.has(t)) {
        const TensorId gradient = c.b.gradients.of(t).id();
        tensors.insert(tensors.end(), {t, gradient, c.b.graph.owner(gradient)});
      }
    kept.emplace(c.b.graph, std::move(tensors), plan.dtype);
  }
  std::vector<TrainedParameter> trained;
  for (TensorId t : parameter_order(c.b.graph, parameters))
    if (c.b.gradients.has(t)) trained.push_back({t, make_states(c.b, c.plan.optimizer, t)});
  for (const auto& group : optimizer_groups(c.b.graph, std::move(trained)))
    optimizer_step(c.b, plan.optimizer, group, c.b.gradients);
  c.b.gradients = {};  // zero_grad()
  c.b.end_phase();
}

VLMEST_INLINE void build_training(Context& c, const Vlm& vlm, const Sequences& s) {
  c.quantization = quantization_of(vlm, c.plan, c.stack(), c.b.gpu);
  if (c.plan.sequence_part.parts > 1 && vlm.text.remote_code)
    throw Error("layout.mesh", "how classes that are not transformers' own divide sequences is not modelled",
                "leave cp out, or give dp=N");
  const std::optional<Sharding> sharding = sharding_of(c, vlm);
  c.sharding = sharding ? &*sharding : nullptr;
  build_divided(sharding, [&] { build_training(c, vlm.family, s, vlm.blocks); });
  c.sharding = nullptr;
}

}  // namespace vlmest
