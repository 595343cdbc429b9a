// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include <vlmest/allocator/config.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/nn/vlm.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/network.hpp>
#include <vlmest/parallel/rank_estimate.hpp>
#include <vlmest/plan/plan.hpp>

/// Which layout over so many GPUs trains fastest of those that fit.
namespace vlmest::parallel {

struct LayoutRequest {
  const Vlm& vlm;
  const Plan& plan;  ///< the batch of a GPU, or of a pipeline's micro-batch
  const Device& device;
  const Network& network;
  allocator::AllocatorConfig allocator;
  int gpus = 2;
  unsigned threads = 0;  ///< that search; 0: one for each processor. The answer is the same
};

/// A layout and what a training step takes in it.
struct LaidOut {
  Layout layout;
  Plan plan;              ///< as asked; with checkpointing where without it no rank would fit
  RankEstimate most;      ///< of the rank that needs most
  Bytes outside{};        ///< of the allocator, on each GPU
  Seconds step, exposed;  ///< and what of it only collectives take
  double bubble_share = 0;
  double tokens_per_second = 0;  ///< of all GPUs
  double mfu = 0;
  bool lower_bound = false;  ///< `step` is one: DeepSpeed's hooks are not in it
  bool fits = false;
};

struct LayoutSearch {
  std::vector<LaidOut> found;  ///< those that fit first, then by tokens a second
  std::size_t estimates = 0;
};

/// Tries replicas with every way to divide their states; pipelines of every length that divides the GPUs, in replicas
/// where GPUs are left, by 1F1B and interleaved 1F1B with twice and eight times as many micro-batches as stages and by
/// GPipe with twice as many, with layers divided evenly and, by 1F1B, by time, and in up to 16 stages by 1F1B with
/// eight times as many in replicas that divide their states (FSDP2); and where the model has a plan for it, layers or
/// experts divided over all GPUs, layers over 2, 4 or 8 of a host in replicas, DDP's and FSDP2's, and in pipelines of 2
/// to 16 stages with eight times as many micro-batches, and experts over as many in FSDP2's replicas. What does not fit
/// is tried with every layer checkpointed; where nothing fits, sequences are divided over 2 to 16 GPUs, in replicas. A
/// layout that is not modelled of this model is left out. Throws Error where the plan asks for the impossible on any
/// GPU, where the network joins too few and where no layout is modelled.
LayoutSearch search_layouts(const LayoutRequest& q);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/layout_search.hpp>
#endif
