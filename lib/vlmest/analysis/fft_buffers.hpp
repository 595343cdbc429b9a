// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include <vlmest/graph/graph.hpp>

namespace vlmest {

/// Most bytes that one spectral block holds for its transforms at one time.
struct FftBuffers {
  ScopeId scope = 0;
  Bytes bytes{};
};

/// A spectral block is a scope that runs transforms. Its buffers are the storages that it makes (fp32 copies, spectra,
/// products, results) and the scratch of its ops (clones, work areas); in a backward what the forward kept there, too,
/// but not the gradients of weights. One entry for each run of such a scope's nodes.
inline std::vector<FftBuffers> fft_buffers(const Graph& g) {
  std::vector<FftBuffers> r;
  const auto is_fft = [](const Op& op) { return std::holds_alternative<Fft>(op); };
  if (std::none_of(g.ops.begin(), g.ops.end(), is_fft)) return r;
  std::vector<bool> spectral(g.scopes.size(), false);
  for (const auto& n : g.nodes)
    if (is_fft(g.op(n))) spectral[static_cast<std::size_t>(n.scope)] = true;
  std::map<ScopeId, std::vector<TensorId>> held;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (!spectral[static_cast<std::size_t>(n.scope)]) continue;
    const auto id = static_cast<NodeId>(i);
    if (r.empty() || r.back().scope != n.scope) r.push_back({.scope = n.scope});
    auto& live = held[n.scope];
    std::erase_if(live, [&](TensorId t) { return g.tensor(t).dies != none && g.tensor(t).dies <= id; });
    Bytes now{};
    for (TensorId t : g.outputs(n))
      if (g.tensor(t).alias_of == none && g.tensor(t).born == id && g.tensor(t).role != Role::gradient)
        live.push_back(t);
    for (TensorId t : live) now += requested_bytes(g.tensor(t));
    for (Bytes b : g.scratch_of(n)) now += b;
    r.back().bytes = std::max(r.back().bytes, now);
  }
  return r;
}

}  // namespace vlmest
