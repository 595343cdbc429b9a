// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/analysis/timeline.hpp>
#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/parallel/states.hpp>

/// What data parallelism itself allocates in a training step, as storages beside those of its graph, so that a replay
/// sees when they are there.
///
/// DistributedDataParallel keeps buckets of the size of all gradients from its construction on (torch 2.11,
/// torch/csrc/distributed/c10d/reducer.cpp, Reducer::initialize_buckets).
///
/// fully_shard (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py) gathers the weights of
/// a unit, which is a layer, or everything that belongs to no layer: into one flat buffer, then into the weights'
/// own. The forward keeps the flat one until the next unit's has been copied, and the last until it ends
/// (FSDPState._post_forward); the backward asks for the next unit's while one runs, for the first at its beginning
/// (FSDPParamGroup._backward_prefetch). Gradients are whole until their unit's backward ends; they are copied into a
/// flat buffer for the reduction, which stays until the next unit's. The unit of the rest is gathered from the
/// beginning of the forward to the end of the backward.
namespace vlmest::parallel {

namespace gathered {

/// Adds an allocation for a unit that lives from node `born` up to node `dies`.
inline void add(std::vector<Storage>& to, BesideGraph what, ScopeId unit, Bytes bytes, NodeId born, NodeId dies) {
  const std::uint8_t stream = what == BesideGraph::all_gather_output ? gathering_stream : 0;
  if (bytes > Bytes{} && born < dies) to.push_back({none, born, dies, unit, bytes, Role::workspace, stream, what});
}

/// The nodes of a phase that run a unit: from the first up to, but not including, `end`.
struct Run {
  ScopeId unit = 0;
  NodeId first = 0, end = 0;
};

/// The units but for the rest, in the order in which a phase begins them.
std::vector<Run> runs(const Graph& g, const Phase& p, const std::vector<ScopeId>& unit_of);

/// What is gathered of each unit's weights, and reduced of its gradients.
struct Sizes {
  Sizes(const ModelStates& states, const StepCollectives& c);
  Bytes of_weights(ScopeId unit) const { return weights[static_cast<std::size_t>(unit)]; }
  Bytes of_trained(ScopeId unit) const { return trained[static_cast<std::size_t>(unit)]; }

  const std::vector<ScopeId>& unit_of;
  std::vector<Bytes> weights, trained;  ///< by the unit's scope
};

/// Weights of one forward and its backward. `stay`: those of the layers too, from their forward to their backward.
void add_weights(std::vector<Storage>& to, const Graph& g, const Sizes& s, const Phase& forward, const Phase& backward,
                 bool stay);

/// Whole gradients of one backward, and what is reduced.
void add_gradients(std::vector<Storage>& to, const Graph& g, const Sizes& s, const Phase& backward);

}  // namespace gathered

/// What a training step allocates for its collectives. The graph's own tensors have their whole sizes.
std::vector<Storage> data_parallel_storages(const Graph& g, const Strategy& s, const ModelStates& states,
                                            const StepCollectives& c);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/buffers.hpp>
#endif
