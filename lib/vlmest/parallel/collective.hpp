// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/graph/graph.hpp>
#include <vlmest/op/collective.hpp>
#include <vlmest/parallel/mesh.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest::parallel {

using vlmest::collective_kinds;
using vlmest::CollectiveKind;

/// One operation of a process group: what buffers hold its tensor, and how long it takes, is asked of the same value.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::dp_replicate;  ///< the ranks that take part
  /// Of the tensor when it is whole: before a reduce-scatter, after an all-gather.
  Bytes bytes{};
  ScopeId unit = 0;  ///< the modules whose weights these are, or whose gradients
};

/// The part of its bytes that each rank sends (op/collective.hpp).
constexpr double traffic(CollectiveKind kind, int n) { return ring_traffic(kind, n); }

/// One after the other over a link, one direction of which is given. Launching them takes no time here, so that only
/// the sum of their bytes counts.
inline Seconds time(std::span<const Collective> all, const Mesh& mesh, Bandwidth link) {
  Seconds r;
  for (const CollectiveKind kind : collective_kinds)
    for (const Dimension group : dimensions) {
      const int ranks = mesh.size(group);
      if (ranks < 2) continue;
      Bytes bytes{};
      for (const Collective& c : all)
        if (c.kind == kind && c.group == group) bytes += c.bytes;
      r += (bytes / link) * traffic(kind, ranks);
    }
  return r;
}

}  // namespace vlmest::parallel
