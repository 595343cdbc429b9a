// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <vlmest/analysis/work.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/network.hpp>
#include <vlmest/parallel/rank_estimate.hpp>

/// What GPUs that divide layers (nn/shard_rules.hpp) send each other. Their group is the innermost of the mesh: its
/// ranks lie next to each other.
namespace vlmest::parallel {

/// The collectives of a graph whose layers are divided among GPUs, phase by phase, over a network; `micro_batches`: how
/// often forward and backward run in a step. `counts` says which nodes do, all of them where it is empty. What runs
/// between one and the first op that reads its result hides it, where the ops' work is given; without, nothing does.
std::vector<CommunicationRow> communication(const Graph& g, const Network& network, const char* group,
                                            std::int64_t micro_batches = 1, std::span<const char> counts = {},
                                            std::span<const Work> of_ops = {});

/// The estimates with the exposed time of these collectives instead of that of their ops.
void put_on_network(InferenceEstimate& e, const std::vector<CommunicationRow>& rows, const Graph& g, const Device& d);
void put_on_network(TrainingEstimate& e, const std::vector<CommunicationRow>& rows, const Graph& g, const Device& d);

/// The ops' work with the collectives' time that of the network.
std::vector<Work> works_over(const Network& network, const Graph& g, std::span<const Work> of_ops);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/layer_collectives.hpp>
#endif
