// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/collective.hpp>
#include <vlmest/parallel/strategy.hpp>

/// What data-parallel GPUs send each other in a training step. Buffers (buffers.hpp) and time (step_time.hpp) are both
/// functions of it.
namespace vlmest::parallel {

/// The unit of each scope of a graph: the outermost member of a list of modules (layers.17), or the root (0), to which
/// all that is in none belongs. A member without modules of its own is no layer but a step of one (merger.mlp.0).
std::vector<ScopeId> units_of_scopes(const Graph& g);

/// Where weights are gathered in another type than they are kept in, fully_shard casts what a unit is called with,
/// which the graph must do (nn/rope.hpp, as_called). Throws Error for a unit that finds something else than that.
void check_cast(const Graph& g, const std::vector<ScopeId>& unit_of);

/// The weights of a graph by units.
struct ModelStates {
  std::vector<ScopeId> unit_of;         ///< of each scope
  std::vector<Bytes> weights, trained;  ///< by the unit's scope; `trained` are the gradients' bytes too
  std::int64_t trained_tensors = 0;
};

/// `trains` says which weights of the graph do.
template <class Trains>
ModelStates model_states(const Graph& g, Trains&& trains) {
  ModelStates r{units_of_scopes(g), std::vector<Bytes>(g.scopes.size()), std::vector<Bytes>(g.scopes.size())};
  for (const Tensor& t : g.loaded()) {
    if (t.role != Role::weight || t.alias_of != none) continue;
    const auto unit = static_cast<std::size_t>(r.unit_of[static_cast<std::size_t>(t.scope)]);
    r.weights[unit] += requested_bytes(t);
    if (!trains(t)) continue;
    r.trained[unit] += requested_bytes(t);
    ++r.trained_tensors;
  }
  return r;
}

inline Bytes total(const std::vector<Bytes>& of_units) {
  Bytes r{};
  for (const Bytes b : of_units) r += b;
  return r;
}

/// The collectives of a step, by when they run.
struct StepCollectives {
  std::vector<Collective> every_pass;  ///< in the forward and backward of each micro-batch
  std::vector<Collective> last_pass;   ///< beside those, in the last one's
  std::vector<Collective> after;       ///< the optimizer
};

/// DistributedDataParallel adds all gradients up in the last backward (no_sync before it); how it cuts them into
/// buckets changes neither bytes nor time. What ZeroRedundancyOptimizer has updated, each shard on one GPU, all others
/// then get (torch/distributed/optim/zero_redundancy_optimizer.py, step).
///
/// fully_shard gathers the weights of each unit before it runs, and once more before its backward where they do not
/// stay; it reduces the unit's gradients behind it, in every micro-batch. Where only the host has the weights, there is
/// no other rank to gather from, and replicas add their gradients up once a step (torch/distributed/fsdp/_fully_shard/
/// _fsdp_collectives.py, foreach_reduce; set_requires_all_reduce).
StepCollectives collectives(const Strategy& s, const ModelStates& states);

}  // namespace vlmest::parallel

#ifndef VLMEST_COMPILED
#include <vlmest/parallel/impl/data_parallel.hpp>
#endif
