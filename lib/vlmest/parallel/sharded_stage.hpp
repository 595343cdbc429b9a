// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/buffers.hpp>
#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/parallel/schedule.hpp>
#include <vlmest/parallel/strategy.hpp>

/// A stage of a pipeline whose replicas divide its states by fully_shard of each layer and of the stage (torch 2.11,
/// torch/distributed/pipelining/stage.py and schedules.py, torch/distributed/fsdp/_fully_shard).
///
/// Backwards neither divide weights again nor reduce gradients (_PipelineStageBase.backward_maybe_with_nosync), which
/// add up whole; in another type than the weights' they are cast to it behind each unit's backward
/// (FSDPParam.to_accumulated_grad_if_needed). Forwards divide each layer's weights behind it, unless they stay
/// (reshard_after_forward), those that a backward has left whole too. So a forward gathers where it follows a forward,
/// and a backward where it follows one; a stage's own weights, its root's, are gathered once.
///
/// Behind the last backward (perform_reduce_grad) the units go one after the other, the root first, then in the order
/// of their modules: weights go, then the buffer of the one before, its own comes, gradients are copied into it and go,
/// and what is reduced of them comes.
namespace vlmest::parallel {

/// How often the tasks of a rank's step gather the weights of each layer.
struct Gathers {
  std::int64_t forward = 0, backward = 0;
};
Gathers gathers(const Strategy& s, const std::vector<PipelineTask>& tasks);

/// The units of a rank's timeline, in which its weights have their whole sizes.
std::vector<gathered::Unit> stage_units(const Timeline& part, const Graph& g, const Strategy& s,
                                        const ModelStates& states);

/// A part of a rank's step, by which a timeline differs in what is gathered when.
struct StretchOfStep {
  Behind behind = Behind::any;  ///< what backwards follow that are not the first
  bool between = true;          ///< forwards run when there are gradients
  bool first = true;            ///< of the forwards ahead of all backwards the first, which gathers the root too
};

/// Those that a rank's step is made of.
std::vector<StretchOfStep> stretches_of_step(const Schedule& s, bool divides, int rank, int ranks,
                                             std::int64_t micro_batches);

/// The lifetimes of a rank with one chunk of layers, divided. `memory` is that of the GPU.
Timeline shard_stage(Timeline part, const Graph& g, const Stages& stages, int rank, const Strategy& s,
                     const ModelStates& states, const StretchOfStep& of, Bytes memory);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/sharded_stage.hpp>
#endif
