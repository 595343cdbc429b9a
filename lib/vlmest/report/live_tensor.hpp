// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vlmest/allocator/process.hpp>
#include <vlmest/tensor/described_tensor.hpp>

namespace vlmest {

/// One entry of a peak: a storage of the graph with what it really occupies, what runs beside the graph, or scratch and
/// workspaces of libraries.
struct LiveTensor {
  TensorId tensor = none;  ///< none: `label` says what it is
  std::string_view label = "";
  NodeId node = none;  ///< of scratch: the node that took it
  Bytes bytes{};
  ScopeId scope = 0;  ///< of what runs beside the graph: the module that it is for
  Role role = Role::workspace;
};

/// The entry of a storage that occupies so much.
constexpr LiveTensor live_tensor(const Storage& s, Bytes occupied) {
  return {s.tensor, name(s.beside), none, occupied, s.scope, s.role};
}

/// Whose module a tensor is named after: its own, or that of the parameter whose gradient or state it is.
inline ScopeId scope_of(const Graph& g, const LiveTensor& t) {
  if (t.tensor == none) return t.node == none ? t.scope : g.node(t.node).scope;
  const Tensor& x = g.tensor(t.tensor);
  return x.of == none ? x.scope : g.tensor(x.of).scope;
}

/// "weight", "gradient of weight", "exp_avg of weight", or the op that made it.
inline std::string name_of(const Graph& g, const LiveTensor& t) {
  if (t.tensor == none) {
    const std::string label(t.label);
    return t.node == none ? label : std::string(g.node(t.node).name) + " " + label;
  }
  const Tensor& x = g.tensor(t.tensor);
  if (x.of != none) return std::string(x.name) + " of " + g.tensor(x.of).name;
  if (x.name[0] != '\0' || x.born < 0 || static_cast<std::size_t>(x.born) >= g.nodes.size()) return x.name;
  return g.node(x.born).name;
}

DescribedTensor describe(const Graph& g, const LiveTensor& t);

/// The first `top` entries and the rest as one entry named "other"; the bytes add up to the whole.
std::vector<DescribedTensor> largest(const Graph& g, const std::vector<LiveTensor>& all, std::size_t top);

/// The role of a tensor, or of what stands for one.
inline Role role_of(const Graph& g, const LiveTensor& t) { return t.tensor == none ? t.role : g.tensor(t.tensor).role; }

/// Whether a storage exists while node n runs, or before it, once a turn has come. In the steady state of training,
/// optimizer states always do: an earlier step made them.
inline bool alive(const Storage& s, NodeId n, std::uint8_t turn = own_turn) {
  const bool came = s.born < n || (s.born == n && s.comes <= turn);
  return s.role == Role::optimizer_state || (came && (s.dies == none || s.dies > n || (s.dies == n && s.goes > turn)));
}

/// The largest first, of equals those that were there first. Few sizes occur, each many times: sizes are sorted,
/// entries are dealt out.
std::vector<LiveTensor> by_bytes(const std::vector<LiveTensor>& all);

/// The storages (indices into the timeline's) that are alive at a phase's peak.
std::vector<std::size_t> alive_at_peak(const Timeline& timeline, const allocator::PhaseMemory& m);

/// What is alive at a phase's peak, sorted by bytes; the bytes add up to the peak.
std::vector<LiveTensor> live_tensors(const Timeline& timeline, std::span<const std::size_t> alive,
                                     const allocator::Process& process, const allocator::PhaseMemory& m);

}  // namespace vlmest

#ifndef VLMEST_COMPILED
#include <vlmest/report/impl/live_tensor.hpp>
#endif
