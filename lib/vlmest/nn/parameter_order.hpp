// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <utility>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// The weights among the graph's first `count` tensors in the order of torch.nn.Module.parameters(), which is the
/// optimizer's: a module's own parameters come before those of its submodules (torch/nn/modules/module.py,
/// named_parameters). A scope without a name is its parent.
inline std::vector<TensorId> parameter_order(const Graph& graph, TensorId count) {
  const auto size = graph.scopes.size();
  const auto at = [](ScopeId s) { return static_cast<std::size_t>(s); };
  // Scopes are numbered in the order of their creation, parents first; a module's children form a list in that order.
  std::vector<ScopeId> module(size, 0), child(size, none), sibling(size, none);
  for (std::size_t s = 1; s < size; ++s) {
    const Scope& e = graph.scopes[s];
    module[s] = e.name[0] == '\0' ? module[at(e.parent)] : static_cast<ScopeId>(s);
  }
  for (std::size_t s = size; s-- > 1;) {
    if (module[s] != static_cast<ScopeId>(s)) continue;
    const std::size_t parent = at(module[at(graph.scopes[s].parent)]);
    sibling[s] = std::exchange(child[parent], static_cast<ScopeId>(s));
  }
  // Each module's turn, then room for its parameters in that order.
  std::vector<std::size_t> first(size + 1, 0), turn(size, 0);
  std::vector<ScopeId> path{0};
  for (std::size_t n = 0; !path.empty(); ++n) {
    const ScopeId s = path.back();
    path.pop_back();
    turn[at(s)] = n;
    if (s != 0 && sibling[at(s)] != none) path.push_back(sibling[at(s)]);
    if (child[at(s)] != none) path.push_back(child[at(s)]);
  }
  const auto turn_of = [&](TensorId t) { return turn[at(module[at(graph.tensor(t).scope)])]; };
  for (TensorId t = 0; t < count; ++t)
    if (graph.tensor(t).role == Role::weight) ++first[turn_of(t) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<TensorId> order(first.back());
  for (TensorId t = 0; t < count; ++t)
    if (graph.tensor(t).role == Role::weight) order[first[turn_of(t)]++] = t;
  return order;
}

}  // namespace vlmest
