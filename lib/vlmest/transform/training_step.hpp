// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/parameter_order.hpp>
#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/trainable.hpp>
#include <vlmest/transform/optimizer.hpp>

namespace vlmest {

constexpr Builder::Checkpoint checkpoint(Checkpointing c) {
  switch (c) {
    case Checkpointing::none: break;
    case Checkpointing::full: return Builder::Checkpoint::all;
    case Checkpointing::selective: return Builder::Checkpoint::all_but_products;
  }
  return Builder::Checkpoint::none;
}

/// Builds one optimizer step in the steady state into c.b.graph: parameters, inputs and labels, then the phases
/// "forward", "backward" and "step", of a model in training mode. Optimizer states are tensors of their own role, born
/// before the first phase.
template <class Family>
void build_training(Context& asked, const Family& family, const Sequences& s) {
  Plan plan = asked.plan;
  plan.dropout = true;  // model.train()
  Context c{asked.b, plan, asked.blocks};
  Adapters adapters;
  if (plan.lora.rank > 0) c.adapters = &adapters;
  check_stored_weights(plan);
  auto model = make_model(c, family);
  declare_adapters(c);
  const auto parameters = static_cast<TensorId>(c.b.graph.tensors.size());
  for (TensorId t = 0; t < parameters; ++t)
    if (trains(plan, c.b.graph, c.b.graph.tensor(t))) c.b.require_grad(t);
  auto inputs = make_inputs(c, family, s);
  const Value labels = inputs.text.ids;
  c.labels = &labels;
  Cache cache = make_cache(family.language);
  for (auto& l : cache.layers) l.off = true;
  c.b.checkpointing = checkpoint(plan.checkpointing);
  c.b.enable_grad(true);
  c.b.begin_phase("forward");
  Value loss = prefill(c, model, inputs, s, cache);
  c.b.end_phase();
  c.b.begin_phase("backward");
  {
    Value seed = eager::fill(c.b, "ones_like", Shape{}, loss.dtype());
    BackwardEngine engine;
    engine.run(loss, seed);
  }
  loss.reset();
  c.b.end_phase();
  c.b.enable_grad(false);
  c.b.begin_phase("step");
  std::vector<TrainedParameter> trained;
  for (TensorId t : parameter_order(c.b.graph, parameters))
    if (c.b.gradients.has(t)) trained.push_back({t, make_states(c.b, c.plan.optimizer, t)});
  optimizer_step(c.b, plan.optimizer, trained, c.b.gradients);
  c.b.gradients = {};  // zero_grad()
  c.b.end_phase();
}
inline void build_training(Context& c, const Vlm& vlm, const Sequences& s) {
  std::visit([&](const auto& family) { build_training(c, family, s); }, vlm.family);
}

}  // namespace vlmest
