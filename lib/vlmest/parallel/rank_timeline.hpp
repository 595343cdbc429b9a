// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/pipeline.hpp>
#include <vlmest/parallel/schedule.hpp>

/// What a rank of a pipeline holds, as torch 2.11 runs it with PipelineStage and step(return_outputs=False)
/// (torch/distributed/pipelining/stage.py and schedules.py), as lifetimes in the graph of the whole model:
/// - its own weights, gradients and states, and what its nodes make;
/// - the whole batch's inputs, of which each micro-batch sees a part (PipelineScheduleSingle._split_inputs);
/// - for each micro-batch a buffer for the hidden states that it receives and one for their gradients, which stay from
///   step to step (_prepare_forward_infra, _prepare_backward_infra);
/// - each micro-batch's result, hidden states or logits, until its backward has ended (fwd_cache, backward_one_chunk);
/// - the gradients that it has sent last, until the next are there (Schedule1F1B._step_microbatches, bwd_sends);
/// - the saved activations of the micro-batches that it has in flight beside the one that runs.
namespace vlmest::parallel {

/// What a rank does in a step.
struct RankOfPipeline {
  int rank = 0;
  std::int64_t micro_batches = 1;
  Schedule schedule;
  Behind behind = Behind::any;  ///< of the backwards that are not the first, those that are asked about
  bool first = false;           ///< of the forwards ahead of all backwards the first one alone
};

/// One timeline for each stretch of a step that differs in which chunks have gradients: the last one of all chunks,
/// from the first forward to the optimizer; with several chunks, those before it stand for the passes in between.
std::vector<Timeline> rank_timelines(const Graph& g, const Timeline& whole, const Stages& stages,
                                     const std::vector<Crossing>& crossings, const RankOfPipeline& of);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/rank_timeline.hpp>
#endif
