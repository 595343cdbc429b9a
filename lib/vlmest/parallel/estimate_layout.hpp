// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/parallel/divided_layers.hpp>
#include <vlmest/parallel/sequence_parts.hpp>
#include <vlmest/parallel/several_gpus.hpp>

/// A run in any layout: what its plan asks of a rank's graph, and the estimate of all ranks.
namespace vlmest::parallel {

/// The plan whose graph a rank runs in `l`: micro-batches of a pipeline, its part of the layers or of the sequences
/// (of those that divide sequences the first rank's), in the type that weights are gathered in. Throws Error where
/// weights are of that type already.
inline Plan plan_of_rank(Plan plan, const Layout& l) {
  if (l.param_dtype && plan.amp)
    throw Error("layout.param_dtype", "autocast within layers that are gathered in another type is not modelled",
                "leave plan.amp out: layers run in layout.param_dtype without it");
  if (l.param_dtype == plan.dtype)
    throw Error("layout.param_dtype", "the weights are in " + std::string(name(plan.dtype)) + " already",
                "give weights of another type, such as plan.dtype=fp32, or leave it out");
  plan.param_dtype = l.param_dtype;
  if (l.pp > 1) plan.gradient_accumulation = micro_batches(l);
  plan.shards = layer_shards(l);
  plan.sequence_part = sequence_part(l);
  return plan;
}

/// `e` is the estimate of `plan`, which is plan_of_rank's, made by `estimator`; its memory becomes that of the rank
/// that needs most, and `fits` is true where every rank's does. Where sequences are divided `estimator` has made that
/// rank's graph at the end. Throws Error for what is not modelled.
inline ParallelEstimate estimate_layout(Estimator& estimator, Estimate& e, const Vlm& vlm, const Plan& plan,
                                        const Device& device, const Layout& l, const Network& network, Phases phases) {
  if (l.cp > 1 && phases == Phases::train) return estimate_sequence_parts(estimator, e, vlm, plan, device, l, network);
  if (divides_layers_alone(l)) return estimate_divided(estimator, e, plan, device, l, network, phases);
  return estimate_several(estimator, e, plan, device, l, network, phases);
}

}  // namespace vlmest::parallel
