// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <vector>

#include <vlmest/analysis/fft_buffers.hpp>
#include <vlmest/analysis/timeline.hpp>
#include <vlmest/analysis/work.hpp>
#include <vlmest/nn/lora.hpp>

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
  Bytes saved{};        ///< activations of its own that are alive when the training forward has ended
  Work prefill;
  Work forward, backward;  ///< in training; what is computed again counts in the backward
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

/// The rows of a graph in the order of its scopes, and for every scope its row.
struct LayerRows {
  std::vector<LayerRow> rows;
  std::vector<std::size_t> row_of;

  explicit LayerRows(const Graph& g) : row_of(g.scopes.size()) {
    const std::vector<ScopeId> scope_of = row_scopes(g);
    std::vector<std::int32_t> index(g.scopes.size(), none);
    for (std::size_t s = 0; s < g.scopes.size(); ++s) {
      const ScopeId r = scope_of[s];
      auto& at = index[static_cast<std::size_t>(r)];
      if (at == none) {
        at = static_cast<std::int32_t>(rows.size());
        rows.push_back({.scope = r, .part = g.scopes[static_cast<std::size_t>(r)].part});
      }
      row_of[s] = static_cast<std::size_t>(at);
    }
  }
  LayerRow& operator[](ScopeId s) { return rows[row_of[static_cast<std::size_t>(s)]]; }

  /// What does not depend on the phase: parameters of the model itself with the scales that they are stored with, and
  /// buffers of spectral blocks.
  void add_static(const Graph& g, const Timeline& timeline) {
    for (const auto& s : timeline.storages()) {
      const Tensor& t = g.tensor(s.tensor);
      const bool scales = s.role == Role::buffer && t.of != none;
      if ((s.role != Role::weight && !scales) || is_adapter(g, t)) continue;
      LayerRow& row = (*this)[s.scope];
      if (!scales) row.params += parameter_count(t);
      row.weights += s.bytes;
    }
    for (const auto& [scope, bytes] : fft_buffers(g)) (*this)[scope].fft = std::max((*this)[scope].fft, bytes);
  }
};

/// Rows of inference, from the prefill phase.
inline std::vector<LayerRow> breakdown(const Graph& g, const Timeline& timeline, std::span<const CacheBytes> cache,
                                       std::span<const Work> of_ops) {
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
    row.prefill += of_ops[static_cast<std::size_t>(node.op)];
    if (const auto* scores = std::get_if<Softmax>(&g.op(node))) {
      const Elements size{checked_mul(scores->rows, scores->width)};
      row.attention = std::max(row.attention, size_of(size, scores->in) + size_of(size, scores->out));
    }
  }
  for (const auto& [scope, bytes] : cache) r[scope].kv += bytes;
  return std::move(r.rows);
}

/// An activation that the forward leaves behind: what the backward needs, and the loss.
inline bool left_by(const Storage& s, const Phase& forward) {
  return s.role == Role::activation && s.born < forward.last && s.born >= forward.first &&
         (s.dies == none || s.dies > forward.last);
}

/// Rows of a training step with these forward and backward phases.
inline std::vector<LayerRow> training_breakdown(const Graph& g, const Timeline& timeline, const Phase& forward,
                                                const Phase& backward, std::span<const Work> of_ops) {
  LayerRows r(g);
  r.add_static(g, timeline);
  for (const auto& s : timeline.storages())
    if (left_by(s, forward)) r[s.scope].saved += s.bytes;
  for (NodeId n = forward.first; n < forward.last; ++n)
    r[g.node(n).scope].forward += of_ops[static_cast<std::size_t>(g.node(n).op)];
  for (NodeId n = backward.first; n < backward.last; ++n)
    r[g.node(n).scope].backward += of_ops[static_cast<std::size_t>(g.node(n).op)];
  return std::move(r.rows);
}

/// Whether two scopes, each of a graph of its own, are the same module.
inline bool same_module(const Graph& a, ScopeId s, const Graph& b, ScopeId t) {
  for (; s > 0 && t > 0;
       s = a.scopes[static_cast<std::size_t>(s)].parent, t = b.scopes[static_cast<std::size_t>(t)].parent) {
    const Scope &x = a.scopes[static_cast<std::size_t>(s)], &y = b.scopes[static_cast<std::size_t>(t)];
    if (x.index != y.index || std::strcmp(x.name, y.name) != 0) return false;
  }
  return s <= 0 && t <= 0;
}

/// Puts what training says of each layer into the rows of inference; both are in the order of the model's modules. What
/// training alone runs (a loss) counts in the model's own row.
inline void add_training(std::vector<LayerRow>& rows, const Graph& inference, const std::vector<LayerRow>& training,
                         const Graph& trained) {
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
