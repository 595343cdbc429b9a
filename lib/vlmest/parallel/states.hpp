// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/placement.hpp>

/// Runs that keep weights, gradients or optimizer states somewhere else: storages are given the size that they have on
/// one GPU, and what replays the graph sees what this GPU holds.
namespace vlmest::parallel {

/// Weights of a graph.
struct WeightBytes {
  Bytes all{};
  Bytes module{};  ///< the largest single module's own
};

WeightBytes weight_bytes(const Graph& g);

/// Streams beside the one that runs the graph, on which fully_shard gathers weights and reduces gradients
/// (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, all_gather_copy_in_stream and reduce_scatter_stream).
/// What is allocated there is never used again for anything else.
inline constexpr std::uint8_t gathering_stream = 1, reducing_stream = 2;

/// The part of a tensor that a rank has of its storage, divided along the first dimension and filled up so that all
/// parts are equal (torch/distributed/fsdp/_fully_shard/_fsdp_common.py, _get_dim0_padded_size).
Elements shard_of(const Tensor& t, std::int64_t parts);

/// Where weights are gathered in another type than they are kept in, a caller has inputs of the latter, and fully_shard
/// casts them as the forward begins (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _pre_forward): the cast ones
/// stay until it has returned, or as long as a backward needs them. Those of the inputs that the timeline has.
std::vector<Storage> cast_inputs(const Graph& g, const Timeline& t);

/// The timeline of a graph whose states have the sizes that this GPU keeps, and inputs the type of these. The
/// optimizer's temporaries are those of its share. Gradients that are reduced where weights are divided too come with
/// the reduction (buffers.hpp).
Timeline keep(const Graph& g, Timeline t, const Shares& s, bool training);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/states.hpp>
#endif
