// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>

/// The buckets in which DistributedDataParallel adds gradients up (torch 2.11, torch/nn/parallel/distributed.py and
/// torch/csrc/distributed/c10d/reducer.cpp).
///
/// Its first step has one bucket of all gradients (_ddp_init_helper: bucket_size_limits = [sys.maxsize]). Where the
/// second step's forward begins, that one goes and others come, filled in the order in which gradients were ready
/// (Reducer::rebuild_buckets, initialize_buckets): a first one of 1 MiB, then each of `bucket_cap_mb`, 25 MiB. A model
/// with parameters that get no gradient needs find_unused_parameters=True, and has buckets of that size from the first
/// step on, filled from the last parameter to the first; here it too has one bucket in its first step.
///
/// Before, weights and buffers are sent by the first rank, in flat copies of 250 MiB (_sync_module_states).
namespace vlmest::parallel {

/// Tensors that lie one after the other.
struct Bucket {
  Bytes bytes{};
  std::size_t tensors = 0;
};

/// Tensors of each type apart, until a bucket holds its limit: the first that of `first`, all others `cap`
/// (compute_bucket_assignment_by_size). What is left of each type comes last.
std::vector<Bucket> fill_buckets(const Graph& g, std::span<const TensorId> tensors, Bytes first, Bytes cap);

/// Of the trained weights, given in the order of torch.nn.Module.parameters(), what a step behind the first one reduces
/// at a time.
std::vector<Bytes> ddp_buckets(const Graph& g, const Timeline& t, std::span<const TensorId> trained);

/// What a rank does before its first step and its second one; of the weights those that it has.
RankSetUp ddp_set_up(const Graph& g, const Timeline& t, std::span<const TensorId> trained);

/// With gradient_as_bucket_view a gradient goes as soon as it is ready in the last backward: it is then in the bucket
/// (Reducer::mark_variable_ready_dense). In those before (no_sync) it stays.
void move_into_buckets(Timeline& t, const Graph& g);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/ddp_buckets.hpp>
#endif
