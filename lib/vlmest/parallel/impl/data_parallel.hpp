// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include <vlmest/parallel/data_parallel.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

VLMEST_INLINE std::vector<ScopeId> units_of_scopes(const Graph& g) {
  std::vector<char> has_modules(g.scopes.size(), 0);
  for (std::size_t s = 1; s < g.scopes.size(); ++s) has_modules[static_cast<std::size_t>(g.scopes[s].parent)] = 1;
  std::vector<ScopeId> r(g.scopes.size(), 0);
  for (std::size_t s = 1; s < r.size(); ++s) {
    const auto parent = static_cast<std::size_t>(g.scopes[s].parent);
    r[s] = r[parent] != 0 ? r[parent] : g.scopes[s].index != none && has_modules[s] ? static_cast<ScopeId>(s) : 0;
  }
  return r;
}

VLMEST_INLINE void check_cast(const Graph& g, const std::vector<ScopeId>& unit_of) {
  if (!g.kept_dtype) return;
  const auto weight =
      std::find_if(g.tensors.begin(), g.tensors.end(), [](const Tensor& t) { return t.role == Role::weight; });
  const auto unit = [&](NodeId n) { return unit_of[static_cast<std::size_t>(g.node(n).scope)]; };
  for (const Phase& p : g.phases) {
    if (p.kind != PhaseKind::forward) continue;
    for (NodeId n = p.first; n < p.last; ++n) {
      if (unit(n) == 0) continue;
      for (const TensorId t : g.inputs(g.node(n))) {
        const Tensor &x = g.tensor(t), &owner = g.tensor(g.owner(t));
        const bool made = owner.role == Role::activation && owner.born >= p.first && owner.born < n;
        if (!made || unit(owner.born) == unit(n) || !is_floating(x.dtype) || is_complex(x.dtype) ||
            x.dtype == weight->dtype)
          continue;
        throw Error("layout.param_dtype",
                    path(g, g.node(n).scope) + " is called with something in " + std::string(name(x.dtype)) +
                        ", which fully_shard casts: how it then runs is not modelled",
                    "leave it out");
      }
    }
  }
}

VLMEST_INLINE StepCollectives collectives(const Strategy& s, const ModelStates& states) {
  StepCollectives r;
  const auto of_units = [&](CollectiveKind kind, const std::vector<Bytes>& bytes) {
    for (std::size_t unit = 0; unit < bytes.size(); ++unit)
      if (bytes[unit] > Bytes{})
        r.every_pass.push_back({kind, Dimension::dp_shard, bytes[unit], static_cast<ScopeId>(unit)});
  };
  if (uses_fully_shard(s)) {
    of_units(CollectiveKind::all_gather, states.weights);
    if (reshards_after_forward(s)) of_units(CollectiveKind::all_gather, states.weights);
    of_units(CollectiveKind::reduce_scatter, states.trained);
  }
  if (mesh(s).dp_replicate < 2) return r;
  const Bytes gradients = total(states.trained);
  r.last_pass.push_back({CollectiveKind::all_reduce, Dimension::dp_replicate, gradients});
  if (s.sharding == Sharding::optimizer)
    r.after.push_back({CollectiveKind::all_gather, Dimension::dp_replicate, gradients});
  return r;
}

}  // namespace vlmest::parallel
