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

/// The scope whose row a scope counts in: the outermost numbered layer above it, or else the module below `model`.
inline ScopeId row_of(const Graph& g, ScopeId s) {
  ScopeId row = s;
  ScopeId numbered = none;
  for (ScopeId at = s; at > 0; at = g.scopes[static_cast<std::size_t>(at)].parent) {
    const Scope& e = g.scopes[static_cast<std::size_t>(at)];
    if (e.index != none) numbered = at;
    const ScopeId up = e.parent;
    const bool top = up <= 0 || (g.scopes[static_cast<std::size_t>(up)].parent <= 0 && g.scopes[static_cast<std::size_t>(up)].part == Part::model);
    if (top) {
      row = at;
      break;
    }
  }
  return numbered != none ? numbered : row;
}

/// What one cache entry holds, by the scope of its layer.
struct CacheBytes {
  ScopeId scope = 0;
  Bytes bytes{};
};

/// Rows in the order of the model's scopes, from the prefill phase.
inline std::vector<LayerRow> breakdown(const Graph& g, const Frees& frees, std::span<const CacheBytes> cache,
                                       const Device& device) {
  std::vector<std::int32_t> index(g.scopes.size(), none);
  std::vector<LayerRow> rows;
  for (std::size_t s = 0; s < g.scopes.size(); ++s) {
    const ScopeId r = row_of(g, static_cast<ScopeId>(s));
    auto& at = index[static_cast<std::size_t>(r)];
    if (at == none) {
      at = static_cast<std::int32_t>(rows.size());
      rows.push_back({.scope = r, .part = g.scopes[static_cast<std::size_t>(r)].part});
    }
    index[s] = at;
  }
  auto row = [&](ScopeId s) -> LayerRow& { return rows[static_cast<std::size_t>(index[static_cast<std::size_t>(s)])]; };
  const Phase& prefill = g.phases.front();
  // Alive per row: births and deaths in node order, as differences at nodes.
  for (const auto& t : g.tensors) {
    if (t.alias_of != none) continue;
    if (t.role == Role::weight) {
      row(t.scope).params += t.storage;
      row(t.scope).weights += requested_bytes(t);
    }
  }
  std::vector<Bytes> live(rows.size());
  std::size_t next = 0;
  while (next < g.tensors.size() && g.tensors[next].born < prefill.first) ++next;
  const auto counts = [](const Tensor& t) { return t.alias_of == none && t.role == Role::activation; };
  for (NodeId n = prefill.first; n < prefill.last; ++n) {
    for (TensorId d : frees.at(n))
      if (const Tensor& t = g.tensor(d); counts(t) && t.born >= prefill.first) live[static_cast<std::size_t>(index[static_cast<std::size_t>(t.scope)])] -= requested_bytes(t);
    const Node& node = g.node(n);
    const auto at = static_cast<std::size_t>(index[static_cast<std::size_t>(node.scope)]);
    for (; next < g.tensors.size() && g.tensors[next].born <= n; ++next)
      if (const Tensor& t = g.tensors[next]; counts(t)) live[static_cast<std::size_t>(index[static_cast<std::size_t>(t.scope)])] += requested_bytes(t);
    Bytes now = live[at];
    for (Bytes b : g.scratch_of(node)) now += b;
    rows[at].activations = std::max(rows[at].activations, now);
    rows[at].prefill += work(cost(node.op), device);
    if (const auto* scores = std::get_if<Softmax>(&node.op)) {
      const Cost c = cost(*scores);
      rows[at].attention = std::max(rows[at].attention, c.read + c.written);
    }
  }
  for (const auto& [scope, bytes] : fft_buffers(g)) row(scope).fft = std::max(row(scope).fft, bytes);
  for (const auto& [scope, bytes] : cache) row(scope).kv += bytes;
  return rows;
}

}  // namespace vlmest
