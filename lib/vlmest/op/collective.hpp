// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vlmest/op/cost.hpp>

namespace vlmest {

enum class CollectiveKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, send };
inline constexpr std::array collective_kinds{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                             CollectiveKind::all_gather, CollectiveKind::all_to_all,
                                             CollectiveKind::send};
constexpr std::string_view name(CollectiveKind k) {
  constexpr std::array<std::string_view, 5> names{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "send"};
  return names[static_cast<std::size_t>(k)];
}

/// The collective of that name; nothing where there is none.
constexpr std::optional<CollectiveKind> collective_kind(std::string_view op) {
  for (const CollectiveKind k : collective_kinds)
    if (op == name(k)) return k;
  return std::nullopt;
}

/// What part of its bytes each of n ranks sends, and receives, in a ring: n - 1 steps of a part of n that reduce, and
/// as many that gather; an all-reduce is both (Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 69(2),
/// 2009, sections 2 and 3). Of an all-to-all a rank keeps its own part; a send goes to
/// one other rank, whole.
constexpr double ring_traffic(CollectiveKind kind, int n) {
  if (kind == CollectiveKind::send) return 1;
  const double once = static_cast<double>(n - 1) / n;
  return kind == CollectiveKind::all_reduce ? once * 2 : once;
}

/// One operation of a process group that stands between the ops of a model, on the tensor that this rank takes part
/// with.
struct CollectiveOp {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 1;
  /// Of the tensor when it is whole: before a reduce-scatter, after an all-gather.
  Bytes bytes{};
  DType dtype = DType::bf16;
};

/// What this rank's memory gives and takes: the whole tensor, or its part of it.
constexpr Cost cost(const CollectiveOp& o) {
  const Bytes part{o.bytes.value() / o.ranks};
  return {.read = o.kind == CollectiveKind::all_gather ? part : o.bytes,
          .written = o.kind == CollectiveKind::reduce_scatter ? part : o.bytes,
          .dtype = o.dtype};
}

}  // namespace vlmest
