// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <vlmest/graph/graph.hpp>
#include <vlmest/parallel/mesh.hpp>
#include <vlmest/unit/rate.hpp>

namespace vlmest::parallel {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, send };
inline constexpr std::array collective_kinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                             CollectiveKind::all_gather, CollectiveKind::send};

constexpr std::string_view name(CollectiveKind k) {
  switch (k) {
    case CollectiveKind::all_reduce: return "all_reduce";
    case CollectiveKind::reduce_scatter: return "reduce_scatter";
    case CollectiveKind::all_gather: return "all_gather";
    case CollectiveKind::send: return "send";
  }
  return "";
}

/// One operation of a process group: what buffers hold its tensor, and how long it takes, is asked of the same value.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Dimension group = Dimension::dp_replicate;  ///< the ranks that take part
  /// Of the tensor when it is whole: before a reduce-scatter, after an all-gather.
  Bytes bytes{};
  ScopeId unit = 0;  ///< the modules whose weights these are, or whose gradients
};

/// What part of its bytes each of n ranks sends, and receives, in a ring: n - 1 steps of a part of n that reduce, and
/// as many that gather; an all-reduce is both (Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 69(2),
/// 2009, sections 2 and 3). A send goes from one rank to another, whole.
constexpr double traffic(CollectiveKind kind, int n) {
  if (kind == CollectiveKind::send) return 1;
  const double once = static_cast<double>(n - 1) / n;
  return kind == CollectiveKind::all_reduce ? once * 2 : once;
}

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
