// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/device/device.hpp>
#include <vlmest/parallel/rank_estimate.hpp>
#include <vlmest/report/estimate.hpp>

/// A run over several GPUs, rank by rank.
namespace vlmest::parallel {

/// What NCCL allocates on each GPU, outside of the framework's allocator. A communicator takes memory in granules of 2
/// MiB (cuMemGetAllocationGranularity): three small tables for each of its point-to-point channels, as many as the next
/// power of two, and two of its own (NCCL 2.28, src/channel.cc, initChannel; init.cc, devCommSetup); and for each
/// channel of a ring the buffers of all protocols where it receives, 0.5 + 4.7 + 4 MiB, and a granule where it sends
/// (src/init.cc, computeBuffSizes; transport/p2p.cc). NCCL's kernels take 360 MiB once a process (NCCL 2.28.9, two
/// H100: tests/data/several_gpus). A rank of a pipeline has point-to-point connections to each of its `neighbours`
/// besides: 430 MiB for one, measured there, not followed in the source.
Bytes nccl_memory(std::int64_t communicators, std::int64_t channels, std::int64_t neighbours = 0);

/// Trained parameters that get no gradient, as those of layers whose results a model does not use. With any of them
/// DistributedDataParallel ends in its second step, unless it is told find_unused_parameters=True
/// (torch/csrc/distributed/c10d/reducer.cpp, ensure_prior_reduction_finished).
std::int64_t parameters_without_gradient(const Graph& g, const Plan& plan);

/// `e` is the estimate of one GPU that holds everything, made by `estimator`; its memory becomes that of the rank that
/// needs most, and `fits` is true where every rank's does, beside what lies outside the allocator. Throws Error for
/// what is not modelled.
ParallelEstimate estimate_several(const Estimator& estimator, Estimate& e, const Plan& plan, const Device& device,
                                  const Layout& layout, const Network& network, Phases phases);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/several_gpus.hpp>
#endif
