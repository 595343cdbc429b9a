// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/launch.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/network.hpp>
#include <vlmest/report/inference.hpp>
#include <vlmest/report/training.hpp>

/// What is said of a run over several GPUs, rank by rank.
namespace vlmest::parallel {

/// What one rank needs, or several that need the same. Phases that were not asked for are empty.
struct RankEstimate {
  std::int64_t rank = 0;   ///< the first of them
  std::int64_t ranks = 1;  ///< how many
  int stage = 0;           ///< of the pipeline
  Bytes weights{}, gradients{}, optimizer{};
  Bytes prefill{}, decode{}, kv_cache{};  ///< peaks of inference
  Bytes forward{}, backward{}, step{};    ///< peaks of training
  Bytes peak{}, reserved{};
  Bytes reserved_in_loop{};  ///< of training step after step, where details are asked for
  bool fits = true;
};

/// Collectives of one kind in one phase of a step, or of a prefill or decode step.
struct CommunicationRow {
  CollectiveKind kind = CollectiveKind::all_reduce;
  const char* group = "dp";
  PhaseKind phase = PhaseKind::backward;
  std::int64_t count = 0;
  Bytes bytes{};          ///< of the whole tensors, all together
  Seconds time, exposed;  ///< and how much of it nothing else hides
};

struct ParallelEstimate {
  Layout layout;
  std::string network;
  std::vector<RankEstimate> ranks;
  std::vector<CommunicationRow> communication;
  Timeline training;  ///< lifetimes of a training step on the rank that needs most
  Bytes outside{};    ///< on each GPU, in no allocator of the framework: the CUDA context and NCCL
  Seconds step;       ///< a training step, or without training the prefill
  double bubble_share = 0;
  double tokens_per_second = 0;  ///< of all GPUs
  /// The model's FLOPs without what checkpointing computes again, in parts of what the tensor cores of all GPUs could
  /// do in that time (Chowdhery et al., PaLM, arXiv:2204.02311, appendix B).
  double mfu = 0;
  std::vector<Launch> launch;  ///< how it is asked for

  Seconds communicated() const;
  Seconds exposed() const;
};

/// Parts of it, by whatever the GPUs divide.
namespace several {

/// Channels of NCCL over so many GPUs.
std::int64_t most_channels(const Network& n, std::int64_t ranks);

/// FLOPs of a step but for the second forwards of checkpointed layers.
double model_flops(const Graph& g, const TrainingEstimate& e, std::span<const Work> of_ops);

/// The device with less memory, for what lies outside of the framework's allocator.
Device without(Device d, Bytes taken);

/// Inference, as each of so many ranks runs it.
RankEstimate inference_rank(const InferenceEstimate& e, std::int64_t ranks);

/// Adds training's memory to a rank's.
void add_training(RankEstimate& r, const TrainingEstimate& e);

/// Bytes of a role in a timeline.
Bytes of_role(const Timeline& t, Role role);

}  // namespace several
}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/rank_estimate.hpp>
#endif
