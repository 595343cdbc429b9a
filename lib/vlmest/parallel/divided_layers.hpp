// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/parallel/several_gpus.hpp>

namespace vlmest::parallel {

/// The collectives of a graph whose layers are divided among GPUs (nn/shard_rules.hpp), phase by phase, over a network;
/// `micro_batches`: how often forward and backward run in a step. They stand between the ops that need their results,
/// so that nothing hides them.
std::vector<CommunicationRow> communication(const Graph& g, const Network& network, const char* group,
                                            std::int64_t micro_batches = 1);

/// The part of estimate_several that concerns divided layers: the estimate of one rank is already that of every rank;
/// the collectives' time becomes that of the network.
ParallelEstimate estimate_divided(const Estimator& estimator, Estimate& e, const Plan& plan, const Device& device,
                                  const Layout& layout, const Network& network, Phases phases);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/divided_layers.hpp>
#endif
