// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>

#include <vlmest/report/breakdown.hpp>
#include <vlmest/unit/compiled.hpp>

namespace vlmest {

VLMEST_INLINE std::vector<ScopeId> row_scopes(const Graph& g) {
  const auto& scopes = g.scopes;
  std::vector<ScopeId> top(scopes.size(), 0), layer(scopes.size(), none), row(scopes.size(), 0);
  for (std::size_t s = 1; s < scopes.size(); ++s) {
    const auto up = static_cast<std::size_t>(scopes[s].parent);
    const bool is_top = up == 0 || (scopes[up].parent == 0 && scopes[up].part == Part::model);
    top[s] = is_top ? static_cast<ScopeId>(s) : top[up];
    if (!is_top) layer[s] = layer[up];
    if (layer[s] == none && scopes[s].index != none) layer[s] = static_cast<ScopeId>(s);
    row[s] = layer[s] != none ? layer[s] : top[s];
  }
  return row;
}

VLMEST_INLINE void LayerRows::add_work(const Graph& g, NodeId first, NodeId last, std::span<const Work> of_ops,
                                       Work LayerRow::*to) {
  /// A layer that was added up into a row that held no work.
  struct Sum {
    NodeId of = 0;
    Work work;
  };
  std::vector<Sum> sums;
  const auto row = [&](NodeId n) -> LayerRow& { return (*this)[g.node(n).scope]; };
  const auto add = [&](NodeId from, NodeId until) {
    for (NodeId n = from; n < until; ++n) row(n).*to += of_ops[static_cast<std::size_t>(g.node(n).op)];
  };
  for (const LayerRun& l : g.layers) {
    if (l.first < first || l.last > last || l.first == l.last) continue;
    add(first, l.first);
    first = l.last;
    LayerRow& own = row(l.first);
    const bool untouched = own.*to == Work{};
    const auto sum = std::find_if(sums.begin(), sums.end(), [&](const Sum& s) { return s.of == l.of; });
    if (untouched && sum != sums.end()) {
      own.*to = sum->work;
      continue;
    }
    add(l.first, l.last);
    bool alone = untouched && l.of == l.first;
    for (NodeId n = l.first; alone && n < l.last; ++n) alone = &row(n) == &own;
    if (alone) sums.push_back({l.of, own.*to});
  }
  add(first, last);
}

VLMEST_INLINE std::vector<LayerRow> breakdown(const Graph& g, const Timeline& timeline,
                                              std::span<const CacheBytes> cache, std::span<const Work> of_ops) {
  LayerRows r(g);
  r.add_static(g, timeline);
  const Phase& prefill = g.phases.front();
  const auto storages = timeline.storages();
  // Alive per row: births and deaths in node order.
  std::vector<Bytes> live(r.rows.size());
  const auto live_in = [&](ScopeId s) -> Bytes& { return live[r.row_of[static_cast<std::size_t>(s)]]; };
  std::size_t next = 0;
  while (next < storages.size() && storages[next].born < prefill.first) ++next;
  for (NodeId n = prefill.first; n < prefill.last; ++n) {
    for (const auto d : timeline.frees(n))
      if (const Storage& s = timeline.storage(d); s.role == Role::activation && s.born >= prefill.first)
        live_in(s.scope) -= s.bytes;
    const Node& node = g.node(n);
    for (; next < storages.size() && storages[next].born <= n; ++next)
      if (const Storage& s = storages[next]; s.role == Role::activation) live_in(s.scope) += s.bytes;
    LayerRow& row = r[node.scope];
    Bytes now = live_in(node.scope);
    for (Bytes b : g.scratch_of(node)) now += b;
    row.activations = std::max(row.activations, now);
    if (const auto* scores = std::get_if<Softmax>(&g.op(node))) {
      const Elements size{checked_mul(scores->rows, scores->width)};
      row.attention = std::max(row.attention, size_of(size, scores->in) + size_of(size, scores->out));
    }
  }
  r.add_work(g, prefill.first, prefill.last, of_ops, &LayerRow::prefill);
  for (const auto& [scope, bytes] : cache) r[scope].kv += bytes;
  return std::move(r.rows);
}

VLMEST_INLINE std::vector<LayerRow> training_breakdown(const Graph& g, const Timeline& timeline, const Phase& forward,
                                                       const Phase& backward, std::span<const Work> of_ops) {
  LayerRows r(g);
  r.add_static(g, timeline);
  for (const auto& s : timeline.storages())
    if (left_by(s, forward)) r[s.scope].saved += s.bytes;
  r.add_work(g, forward.first, forward.last, of_ops, &LayerRow::forward);
  r.add_work(g, backward.first, backward.last, of_ops, &LayerRow::backward);
  return std::move(r.rows);
}

VLMEST_INLINE bool same_module(const Graph& a, ScopeId s, const Graph& b, ScopeId t) {
  for (; s > 0 && t > 0;
       s = a.scopes[static_cast<std::size_t>(s)].parent, t = b.scopes[static_cast<std::size_t>(t)].parent) {
    const Scope &x = a.scopes[static_cast<std::size_t>(s)], &y = b.scopes[static_cast<std::size_t>(t)];
    if (x.index != y.index || std::strcmp(x.name, y.name) != 0) return false;
  }
  return s <= 0 && t <= 0;
}

VLMEST_INLINE void add_training(std::vector<LayerRow>& rows, const Graph& inference,
                                const std::vector<LayerRow>& training, const Graph& trained) {
  std::size_t at = 0;
  for (const LayerRow& t : training) {
    std::size_t found = at;
    while (found < rows.size() && !same_module(inference, rows[found].scope, trained, t.scope)) ++found;
    if (found < rows.size())
      at = found + 1;
    else
      found = 0;
    rows[found].saved += t.saved;
    rows[found].forward += t.forward;
    rows[found].backward += t.backward;
  }
}

}  // namespace vlmest
