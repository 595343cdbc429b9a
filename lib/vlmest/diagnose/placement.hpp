// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/diagnose/settings.hpp>
#include <vlmest/graph/graph.hpp>

/// Graphs of runs that keep weights, gradients or optimizer states somewhere else: the tensors are given the size that
/// they have on one GPU, and what replays the graph sees what this GPU holds.
namespace vlmest::diagnose {

/// What part of each kind of state a GPU keeps for itself: 1 / share, or nothing where share is 0.
struct Shares {
  std::int64_t weights = 1, gradients = 1, optimizer = 1;
};

/// Sharding divides the optimizer's states; then gradients too, and with fully_shard the weights while nothing uses
/// them, which they do from the forward to the backward, or only layer by layer (gathered.hpp). The optimizer that runs
/// on the host keeps its states there, and gradients stay on the GPU until it has read them
/// (torchao.optim.CPUOffloadOptimizer); with parameters on the host everything is
/// (torch.distributed.fsdp.CPUOffloadPolicy).
constexpr Shares shares(const Placement& p) {
  const std::int64_t n = p.gpus;
  Shares s;
  if (p.sharding >= Sharding::optimizer) s.optimizer = n;
  if (p.sharding >= Sharding::gradients) s.gradients = s.weights = n;
  if (p.bucket_views) s.gradients = 0;
  if (p.offload >= Offload::optimizer) s.optimizer = 0;
  if (p.offload >= Offload::parameters) s.gradients = s.weights = 0;
  return s;
}

/// Weights for which something holds.
struct WeightBytes {
  Bytes all{};
  Bytes module{};  ///< the largest single module's own
};

template <class Counts>
WeightBytes weight_bytes(const Graph& g, Counts&& counts) {
  WeightBytes r;
  std::vector<Bytes> of_scope(g.scopes.size());
  for (const Tensor& t : g.loaded()) {
    if (t.role != Role::weight || t.alias_of != none || !counts(t)) continue;
    const Bytes bytes = requested_bytes(t);
    r.all += bytes;
    of_scope[static_cast<std::size_t>(t.scope)] += bytes;
  }
  r.module = *std::max_element(of_scope.begin(), of_scope.end());
  return r;
}
inline WeightBytes weight_bytes(const Graph& g) {
  return weight_bytes(g, [](const Tensor&) { return true; });
}

/// Gives a graph's states the sizes that this GPU keeps. The optimizer's temporaries are those of its share.
inline void keep(Graph& g, const Shares& s, bool training) {
  const auto part = [](Tensor& t, std::int64_t share) {
    const std::int64_t n = t.storage.value();
    t.storage = Elements(share == 0 ? 0 : (n + share - 1) / share);
  };
  const NodeId step = training ? g.phases.back().first : static_cast<NodeId>(g.nodes.size());
  for (Tensor& t : g.tensors) {
    if (t.alias_of != none) continue;
    if (t.role == Role::weight)
      part(t, s.weights);
    else if (t.role == Role::gradient)
      part(t, s.gradients);
    else if (t.role == Role::optimizer_state || (t.born >= step && t.role != Role::buffer && t.role != Role::input))
      part(t, s.optimizer);
  }
}

}  // namespace vlmest::diagnose
