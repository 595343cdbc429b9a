// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/analysis/timeline.hpp>
#include <vlmest/analysis/work.hpp>

namespace vlmest {

/// One layer or top-level module.
struct LayerRow {
  ScopeId scope = 0;
  Part part = Part::model;
  Elements params{};
  Bytes weights{};
  Bytes kv{};           ///< keys and values that the layer keeps after the prefill
  Bytes activations{};  ///< most requested bytes of its own storages alive at one time in the prefill
  Bytes attention{};    ///< written-out attention scores and weights among them
  Bytes fft{};          ///< spectra, fp32 copies and work areas of a spectral block
  Work prefill;
};

/// For every scope the scope whose row it counts in: the outermost numbered layer at or above it, or else the module
/// below `model`.
inline std::vector<ScopeId> row_scopes(const Graph& g) {
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

/// What one cache entry holds, by the scope of its layer.
struct CacheBytes {
  ScopeId scope = 0;
  Bytes bytes{};
};

/// Rows in the order of the model's scopes, from the prefill phase.
inline std::vector<LayerRow> breakdown(const Graph& g, const Timeline& timeline, std::span<const CacheBytes> cache,
                                       std::span<const Work> of_ops) {
  const std::vector<ScopeId> row_of = row_scopes(g);
  std::vector<std::int32_t> index(g.scopes.size(), none);
  std::vector<LayerRow> rows;
  for (std::size_t s = 0; s < g.scopes.size(); ++s) {
    const ScopeId r = row_of[s];
    auto& at = index[static_cast<std::size_t>(r)];
    if (at == none) {
      at = static_cast<std::int32_t>(rows.size());
      rows.push_back({.scope = r, .part = g.scopes[static_cast<std::size_t>(r)].part});
    }
    index[s] = at;
  }
  auto row = [&](ScopeId s) -> LayerRow& { return rows[static_cast<std::size_t>(index[static_cast<std::size_t>(s)])]; };
  const Phase& prefill = g.phases.front();
  const auto storages = timeline.storages();
  for (const auto& s : storages) {
    if (s.role != Role::weight) continue;
    row(s.scope).params += g.tensor(s.tensor).storage;
    row(s.scope).weights += s.bytes;
  }
  // Alive per row: births and deaths in node order.
  const auto at_row = [&](ScopeId s) { return static_cast<std::size_t>(index[static_cast<std::size_t>(s)]); };
  std::vector<Bytes> live(rows.size());
  std::size_t next = 0;
  while (next < storages.size() && storages[next].born < prefill.first) ++next;
  for (NodeId n = prefill.first; n < prefill.last; ++n) {
    for (const auto d : timeline.frees(n))
      if (const Storage& s = timeline.storage(d); s.role == Role::activation && s.born >= prefill.first)
        live[at_row(s.scope)] -= s.bytes;
    const Node& node = g.node(n);
    for (; next < storages.size() && storages[next].born <= n; ++next)
      if (const Storage& s = storages[next]; s.role == Role::activation) live[at_row(s.scope)] += s.bytes;
    LayerRow& r = rows[at_row(node.scope)];
    Bytes now = live[at_row(node.scope)];
    for (Bytes b : g.scratch_of(node)) now += b;
    r.activations = std::max(r.activations, now);
    r.prefill += of_ops[static_cast<std::size_t>(node.op)];
    if (const auto* scores = std::get_if<Softmax>(&g.op(node))) {
      const Elements size{checked_mul(scores->rows, scores->width)};
      r.attention = std::max(r.attention, size_of(size, scores->in) + size_of(size, scores->out));
    }
  }
  for (const auto& [scope, bytes] : fft_buffers(g)) row(scope).fft = std::max(row(scope).fft, bytes);
  for (const auto& [scope, bytes] : cache) row(scope).kv += bytes;
  return rows;
}

}  // namespace vlmest
