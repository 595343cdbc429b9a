// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <vlmest/parallel/layout.hpp>
#include <vlmest/unit/rate.hpp>

/// In which order the stages of a pipeline run forwards and backwards, and how long that takes.
namespace vlmest::parallel {

/// Something that a rank runs: the forward of a micro-batch through one of its chunks of layers, the backward, or with
/// a zero-bubble schedule the backward of activations and that of weights apart.
struct PipelineTask {
  enum class Kind : std::uint8_t { forward, backward, weights } kind = Kind::forward;
  int chunk = 0;
  std::int64_t micro_batch = 0;
};

/// What a rank runs, in order.
/// - gpipe: all forwards, then all backwards (Huang et al., GPipe, arXiv:1811.06965, section 2.3).
/// - 1f1b: as many forwards as stages follow, then in turn (Narayanan et al., PipeDream-2BW, arXiv:2006.09503;
/// Megatron-LM,
///   arXiv:2104.04473, section 2.2.1).
/// - interleaved: the same over chunks, of which each rank has several: groups of as many micro-batches as stages go
///   through one chunk after the other (arXiv:2104.04473, section 2.2.2; megatron/core/pipeline_parallel/schedules.py,
///   forward_backward_pipelining_with_interleaving). The micro-batches must be a multiple of the stages.
/// - zero-bubble: 1f1b with the backward of weights put off as far as the memory of 1f1b allows: ZB-H1 (Qi et al., Zero
///   Bubble Pipeline Parallelism, arXiv:2401.10241, section 2.2).
std::vector<PipelineTask> pipeline_order(const Schedule& s, int stage, int stages, std::int64_t micro_batches);

/// How many micro-batches' saved activations a rank holds beside those of the one that it runs, where they are most: of
/// each of its chunks ([chunk]), while it runs one of them ([running]).
using HeldMicroBatches = std::vector<std::vector<std::int64_t>>;

/// What a backward follows on its rank.
enum class Behind : std::uint8_t { any, forward, backward };

/// The passes of a step by which gradients there are, which decides what else is in memory: backwards go from the last
/// chunk to the first, and a chunk's first one makes its gradients, to which the later ones add.
struct HeldInStep {
  HeldMicroBatches before;                           ///< forwards before there are any
  HeldMicroBatches first;                            ///< the first backward of each chunk
  std::vector<HeldMicroBatches> forward;             ///< [n - 1]: where n chunks have gradients
  std::vector<HeldMicroBatches> backward;            ///< [n - 1]: backwards that are not their chunk's first
  HeldMicroBatches behind_forward, behind_backward;  ///< of those, apart
  bool has_behind_forward = false, has_behind_backward = false;
  bool has_forward_between = false;  ///< a forward that runs when there are gradients
};
/// `bytes`: what a micro-batch leaves in each chunk, by which most is the most.
HeldInStep held_in_step(const Schedule& s, int stage, int stages, std::int64_t micro_batches,
                        std::span<const Bytes> bytes);

/// How long one micro-batch keeps a stage busy. `weights` is a part of `backward`.
struct StageTime {
  Seconds forward, backward, weights;
};

struct PipelineTime {
  Seconds all;              ///< until the last stage has run its last task
  Seconds sent;             ///< sends between stages, each on its way once
  double bubble_share = 0;  ///< of the time of all ranks, what they wait
};

/// All micro-batches of a step. `send` is the time from one stage to the next.
PipelineTime pipeline_time(const Schedule& s, const std::vector<StageTime>& stages, std::int64_t micro_batches,
                           Seconds send);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/schedule.hpp>
#endif
