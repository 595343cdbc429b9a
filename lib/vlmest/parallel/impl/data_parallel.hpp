// SPDX-License-Identifier: Apache-2.0
#pragma once

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
