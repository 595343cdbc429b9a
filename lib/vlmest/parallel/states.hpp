// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

/// Whether a tensor of the graph is an input that a caller has in the type that weights are kept in, not in the one
/// that they are gathered in.
inline bool is_cast(const Graph& g, const Tensor& t) {
  return g.kept_dtype && t.role == Role::input && is_floating(t.dtype) && t.dtype != *g.kept_dtype;
}

/// The timeline of a graph whose states have the sizes that this GPU keeps, and inputs the type of these. The
/// optimizer's temporaries are those of its share. Gradients that are reduced where weights are divided too come with
/// the reduction (buffers.hpp).
Timeline keep(const Graph& g, Timeline t, const Shares& s, bool training);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/states.hpp>
#endif
