// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/parallel/buffers.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest::parallel {

namespace gathered {

VLMEST_INLINE std::vector<Run> runs(const Graph& g, const Phase& p, const std::vector<ScopeId>& unit_of) {
  std::vector<Run> r;
  std::vector<std::int32_t> at(g.scopes.size(), none);
  for (NodeId n = p.first; n < p.last; ++n) {
    const ScopeId unit = unit_of[static_cast<std::size_t>(g.node(n).scope)];
    if (unit == 0) continue;
    std::int32_t& i = at[static_cast<std::size_t>(unit)];
    if (i == none) {
      i = static_cast<std::int32_t>(r.size());
      r.push_back({unit, n, n});
    }
    r[static_cast<std::size_t>(i)].end = n + 1;
  }
  return r;
}

VLMEST_INLINE Sizes::Sizes(const ModelStates& states, const StepCollectives& c)
    : unit_of(states.unit_of), weights(states.weights.size()), trained(states.trained.size()) {
  for (const Collective& x : c.every_pass)
    (x.kind == CollectiveKind::all_gather ? weights : trained)[static_cast<std::size_t>(x.unit)] = x.bytes;
}

VLMEST_INLINE void add_weights(std::vector<Storage>& to, const Graph& g, const Sizes& s, const Phase& forward,
                               const Phase& backward, bool stay) {
  using enum BesideGraph;
  const auto there = runs(g, forward, s.unit_of), back = runs(g, backward, s.unit_of);
  std::vector<NodeId> ends(g.scopes.size(), backward.last);  // of the backward of each unit
  for (const Run& r : back) ends[static_cast<std::size_t>(r.unit)] = r.end;
  add(to, gathered_weights, 0, s.of_weights(0), forward.first, backward.last);
  add(to, all_gather_output, 0, s.of_weights(0), forward.first, there.empty() ? forward.last : there.front().first);
  for (std::size_t i = 0; i < there.size(); ++i) {
    const Run& r = there[i];
    const Bytes bytes = s.of_weights(r.unit);
    add(to, gathered_weights, r.unit, bytes, r.first, stay ? ends[static_cast<std::size_t>(r.unit)] : r.end);
    add(to, all_gather_output, r.unit, bytes, r.first, i + 1 < there.size() ? there[i + 1].first : forward.last);
  }
  if (stay) return;
  for (std::size_t i = 0; i < back.size(); ++i) {
    const Run& r = back[i];
    const Bytes bytes = s.of_weights(r.unit);
    add(to, gathered_weights, r.unit, bytes, r.first, r.end);
    add(to, all_gather_output, r.unit, bytes, i > 0 ? back[i - 1].first : backward.first, r.first);
  }
}

VLMEST_INLINE void add_gradients(std::vector<Storage>& to, const Graph& g, const Sizes& s, const Phase& backward) {
  using enum BesideGraph;
  const auto back = runs(g, backward, s.unit_of);
  std::vector<NodeId> ends(g.scopes.size(), backward.last);
  for (const Run& r : back) ends[static_cast<std::size_t>(r.unit)] = r.end;
  bool first = false;
  for (const Tensor& t : g.tensors)
    if (t.role == Role::gradient && t.alias_of == none && t.born >= backward.first && t.born < backward.last) {
      const ScopeId unit = s.unit_of[static_cast<std::size_t>(g.tensor(t.of).scope)];
      add(to, whole_gradients, unit, requested_bytes(t), t.born, ends[static_cast<std::size_t>(unit)]);
      first = true;
    }
  if (!first) {  // a later micro-batch, which adds to the shards of the first one's
    for (const Run& r : back) add(to, whole_gradients, r.unit, s.of_trained(r.unit), r.first, r.end);
    add(to, whole_gradients, 0, s.of_trained(0), backward.first, backward.last);
  }
  for (std::size_t i = 0; i < back.size(); ++i)
    add(to, reduce_scatter_input, back[i].unit, s.of_trained(back[i].unit), back[i].end - 1,
        i + 1 < back.size() ? back[i + 1].end - 1 : backward.last);
  // The rest is reduced when the last node has ended: what that node leaves behind is gone by then.
  Bytes gone{};
  for (const Tensor& t : g.tensors)
    if (t.alias_of == none && t.dies == backward.last && t.born < backward.last && t.role == Role::activation)
      gone += requested_bytes(t);
  add(to, reduce_scatter_input, 0, std::max(Bytes{}, s.of_trained(0) - gone), backward.last - 1, backward.last);
}

}  // namespace gathered

VLMEST_INLINE std::vector<Storage> data_parallel_storages(const Graph& g, const Strategy& s, const ModelStates& states,
                                                          const StepCollectives& c) {
  std::vector<Storage> r;
  if (has_buckets(s))
    for (const Collective& x : c.last_pass)
      r.push_back({none, before_all, none, 0, x.bytes, Role::buffer, 0, BesideGraph::gradient_bucket});
  if (!uses_fully_shard(s)) return r;
  const gathered::Sizes sizes(states, c);
  for (std::size_t i = 0; i + 2 < g.phases.size(); i += 2) {
    gathered::add_weights(r, g, sizes, g.phases[i], g.phases[i + 1], !reshards_after_forward(s));
    gathered::add_gradients(r, g, sizes, g.phases[i + 1]);
  }
  return r;
}

}  // namespace vlmest::parallel
