// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/analysis/timeline.hpp>

namespace vlmest {

/// The node at which most requested bytes are alive, its scratch included, and the storages that make it.
struct Peak {
  NodeId node = 0;
  Bytes bytes{};
  Bytes scratch{};
};

/// One sweep over the nodes [first, last): requested bytes, without any allocator's rounding.
inline Peak requested_peak(const Graph& g, NodeId first, NodeId last) {
  const Timeline timeline(g);
  const auto storages = timeline.storages();
  Peak peak{.node = first};
  Bytes live{};
  std::size_t next = 0;
  for (NodeId n = 0; n < last; ++n) {
    for (const auto i : timeline.frees(n)) live -= timeline.storage(i).bytes;
    for (; next < storages.size() && storages[next].born <= n; ++next) live += storages[next].bytes;
    Bytes scratch{};
    for (Bytes b : g.scratch_of(g.node(n))) scratch += b;
    if (n >= first && live + scratch > peak.bytes) peak = {n, live + scratch, scratch};
  }
  return peak;
}

/// Storages alive at node n: born at or before it, not yet dead.
inline std::vector<TensorId> live_at(const Graph& g, NodeId n) {
  std::vector<TensorId> r;
  for (std::size_t i = 0; i < g.tensors.size(); ++i)
    if (const auto& t = g.tensors[i]; t.alias_of == none && t.born <= n && (t.dies == none || t.dies > n))
      r.push_back(static_cast<TensorId>(i));
  return r;
}

}  // namespace vlmest
