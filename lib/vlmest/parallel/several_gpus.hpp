// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/device/device.hpp>
#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/network.hpp>
#include <vlmest/report/estimate.hpp>

/// A run over several GPUs, rank by rank.
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
  bool fits = true;
};

/// Collectives of one kind in one phase of a step, or of a prefill or decode step.
struct CommunicationRow {
  CollectiveKind kind = CollectiveKind::all_reduce;
  const char* group = "dp";
  const char* phase = "backward";
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

  Seconds communicated() const;
  Seconds exposed() const;
};

/// What NCCL allocates on each GPU, outside of the framework's allocator. A communicator takes memory in granules of 2
/// MiB (cuMemGetAllocationGranularity): three small tables for each of its point-to-point channels, as many as the next
/// power of two, and two of its own (NCCL 2.28, src/channel.cc, initChannel; init.cc, devCommSetup); and for each
/// channel of a ring the buffers of all protocols where it receives, 0.5 + 4.7 + 4 MiB, and a granule where it sends
/// (src/init.cc, computeBuffSizes; transport/p2p.cc). NCCL's kernels take 360 MiB once a process (NCCL 2.28.9, two
/// H100: tests/data/several_gpus).
Bytes nccl_memory(std::int64_t communicators, std::int64_t channels);

/// Bytes of each of DistributedDataParallel's buckets: parameters from the last to the first until one holds
/// `bucket_cap_mb` (25 MiB), the first 1 MiB, for each type apart (torch/csrc/distributed/c10d/reducer.cpp,
/// compute_bucket_assignment_by_size; torch/nn/parallel/distributed.py).
std::vector<Bytes> ddp_buckets(const Graph& g, std::span<const TensorId> trained);

/// `e` is the estimate of one GPU that holds everything, made by `estimator`; its memory becomes that of the rank that
/// needs most, and `fits` is true where every rank's does, beside what lies outside the allocator. Throws Error for
/// what is not modelled.
ParallelEstimate estimate_several(const Estimator& estimator, Estimate& e, const Plan& plan, const Device& device,
                                  const Layout& layout, const Network& network, Phases phases);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/several_gpus.hpp>
#endif
