// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sequence_layout.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest {

constexpr Builder::Checkpoint checkpoint(Checkpointing c) {
  switch (c) {
    case Checkpointing::off: break;
    case Checkpointing::full: return Builder::Checkpoint::all;
    case Checkpointing::selective: return Builder::Checkpoint::all_but_products;
  }
  return Builder::Checkpoint::off;
}

inline bool wants_input_gradients(const Plan& plan) {
  const Trainable& t = plan.trainable;
  const bool frozen = plan.lora.rank > 0 || !t.vision || !t.projector || !t.language;
  return plan.input_gradients.value_or(frozen && plan.checkpointing != Checkpointing::off);
}

/// Builds one optimizer step in the steady state into c.b.graph: parameters, inputs and labels, then the phases
/// "forward", "backward" and "step", of a model in training mode. Optimizer states are tensors of their own role, born
/// before the first phase.
///
/// With gradient accumulation forward and backward come twice: once without gradients, as the first micro-batch runs,
/// and once with them, as all others do, which add theirs in place. Micro-batches are of one size and follow each other
/// on the GPU: the inputs of the one before are gone when the next ones are copied there, as in a loop that rebinds its
/// batch; each loss is divided by the number of micro-batches.
void build_training(Context& asked, const Family& family, const Sequences& s,
                    const std::vector<BlockConfig>& added = {});
void build_training(Context& c, const Vlm& vlm, const Sequences& s);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/transform/impl/training_step.hpp>
#endif
