// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/diagnose/settings.hpp>
#include <vlmest/graph/graph.hpp>

/// Graphs of runs that keep weights, gradients or optimizer states somewhere else: the tensors are given the size that
/// they have on one GPU, and what replays the graph sees what this GPU holds.
namespace vlmest::diagnose {

/// What part of each kind of state a GPU keeps: 1 / share, or nothing where share is 0.
struct Shares {
  std::int64_t weights = 1, gradients = 1, optimizer = 1;
};

/// Sharding divides the optimizer's states; then gradients too; then weights too. The optimizer that runs on the host
/// keeps its states there, and gradients stay on the GPU until it has read them (torchao.optim.CPUOffloadOptimizer);
/// with parameters on the host everything is (torch.distributed.fsdp.CPUOffloadPolicy).
constexpr Shares shares(const Placement& p) {
  const std::int64_t n = p.gpus;
  Shares s;
  if (p.sharding >= Sharding::optimizer) s.optimizer = n;
  if (p.sharding >= Sharding::gradients) s.gradients = n;
  if (p.sharding >= Sharding::parameters) s.weights = n;
  if (p.offload >= Offload::optimizer) s.optimizer = 0;
  if (p.offload >= Offload::parameters) s.gradients = s.weights = 0;
  return s;
}

/// Weights that are gathered together while they are used: those of a layer (a member of a list of modules, such as
/// layers.17), and all that belong to no layer, which are one unit more.
struct Units {
  Bytes all{};
  Bytes largest{};  ///< layer
  Bytes rest{};     ///< that belong to no layer
  Bytes module{};   ///< the largest single module's own
};

/// Units of the tensors for which `counts` holds.
template <class Counts>
Units units(const Graph& g, Counts&& counts) {
  Units u;
  std::vector<Bytes> of_scope(g.scopes.size()), of_layer(g.scopes.size());
  for (const Tensor& t : g.loaded()) {
    if (t.alias_of != none || !counts(t)) continue;
    const Bytes bytes = requested_bytes(t);
    u.all += bytes;
    of_scope[static_cast<std::size_t>(t.scope)] += bytes;
    ScopeId layer = none;  // the outermost: experts of a layer belong to it
    for (ScopeId s = t.scope; s > 0; s = g.scopes[static_cast<std::size_t>(s)].parent)
      if (g.scopes[static_cast<std::size_t>(s)].index != none) layer = s;
    (layer == none ? u.rest : of_layer[static_cast<std::size_t>(layer)]) += bytes;
  }
  u.largest = *std::max_element(of_layer.begin(), of_layer.end());
  u.module = *std::max_element(of_scope.begin(), of_scope.end());
  return u;
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
