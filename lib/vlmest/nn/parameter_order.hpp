// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// The weights among the graph's first `count` tensors in the order of torch.nn.Module.parameters(), which is the
/// optimizer's: a module's own parameters come before those of its submodules (torch/nn/modules/module.py,
/// named_parameters). A scope without a name is its parent.
inline std::vector<TensorId> parameter_order(const Graph& graph, TensorId count) {
  const auto scope = [&](ScopeId s) -> const Scope& { return graph.scopes[static_cast<std::size_t>(s)]; };
  const auto module = [&](ScopeId s) {
    while (s != 0 && scope(s).name[0] == '\0') s = scope(s).parent;
    return s;
  };
  // Modules on the way from the root down to each one; scopes are numbered in the order of their creation.
  std::map<std::vector<ScopeId>, std::vector<TensorId>> by_module;
  for (TensorId t = 0; t < count; ++t) {
    const Tensor& x = graph.tensor(t);
    if (x.role != Role::weight) continue;
    std::vector<ScopeId> path;
    for (ScopeId s = module(x.scope); s != 0; s = module(scope(s).parent)) path.insert(path.begin(), s);
    by_module[path].push_back(t);
  }
  std::vector<TensorId> order;
  for (const auto& [path, own] : by_module) order.insert(order.end(), own.begin(), own.end());
  return order;
}

}  // namespace vlmest
