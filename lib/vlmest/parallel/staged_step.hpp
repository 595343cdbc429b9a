// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/device/device.hpp>
#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/parallel/rank_estimate.hpp>
#include <vlmest/parallel/strategy.hpp>
#include <vlmest/report/estimate.hpp>

namespace vlmest::parallel {

/// Replicas of a stage: the weights that train, in the order of torch.nn.Module.parameters(), and what is divided.
struct StageReplicas {
  std::span<const TensorId> trained;
  const Strategy& strategy;
  const ModelStates& states;
};

/// A training step in the stages of a pipeline, each of which data-parallel replicas may have: fills the ranks, the
/// collectives and the time of `p`. `t` is the step of one GPU that runs all stages, and becomes that of the stage that
/// needs most. `device` has the
/// memory that the framework's allocator finds; `tokens` are those of a micro-batch on all replicas, `peak_rate` what
/// all GPUs could do in a second.
void estimate_stages(ParallelEstimate& p, const Estimator& estimator, TrainingEstimate& t,
                     const StageReplicas& replicas, const Device& device, const Network& network, double tokens,
                     double peak_rate);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/staged_step.hpp>
#endif
