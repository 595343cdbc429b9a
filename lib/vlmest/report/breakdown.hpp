// SPDX-License-Identifier: Apache-2.0
#pragma once

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
std::vector<ScopeId> row_scopes(const Graph& g);

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
      if (s.role != Role::weight && s.role != Role::buffer) continue;
      const Tensor& t = g.tensor(s.tensor);
      const bool scales = s.role == Role::buffer;
      if ((scales && t.of == none) || is_adapter(g, t)) continue;
      LayerRow& row = (*this)[s.scope];
      if (!scales) row.params += parameter_count(t);
      row.weights += s.bytes;
    }
    for (const auto& [scope, bytes] : fft_buffers(g)) (*this)[scope].fft = std::max((*this)[scope].fft, bytes);
  }
  /// The work of the nodes [first, last), each in its row. Layers that are copies of another run its ops: where a layer
  /// is a row of its own, its copies' sums are the same.
  void add_work(const Graph& g, NodeId first, NodeId last, std::span<const Work> of_ops, Work LayerRow::*to);
};

/// Rows of inference, from the prefill phase.
std::vector<LayerRow> breakdown(const Graph& g, const Timeline& timeline, std::span<const CacheBytes> cache,
                                std::span<const Work> of_ops);

/// An activation that the forward leaves behind: what the backward needs, and the loss.
inline bool left_by(const Storage& s, const Phase& forward) {
  return s.role == Role::activation && s.born < forward.last && s.born >= forward.first &&
         (s.dies == none || s.dies > forward.last);
}

/// Rows of a training step with these forward and backward phases.
std::vector<LayerRow> training_breakdown(const Graph& g, const Timeline& timeline, const Phase& forward,
                                         const Phase& backward, std::span<const Work> of_ops);

/// Whether two scopes, each of a graph of its own, are the same module.
bool same_module(const Graph& a, ScopeId s, const Graph& b, ScopeId t);

/// Puts what training says of each layer into the rows of inference; both are in the order of the model's modules. What
/// training alone runs (a loss) counts in the model's own row.
void add_training(std::vector<LayerRow>& rows, const Graph& inference, const std::vector<LayerRow>& training,
                  const Graph& trained);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/breakdown.hpp>
#endif
