// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <vlmest/parallel/layout.hpp>
#include <vlmest/parallel/network.hpp>
#include <vlmest/parallel/rank_estimate.hpp>

namespace vlmest::parallel::several {

/// Collects collectives of those that hold the same states as rows.
struct Rows {
  const Network& network;
  const Layout& layout;
  std::vector<CommunicationRow> all;

  void add(CollectiveKind kind, PhaseKind phase, std::span<const Bytes> sizes, std::int64_t times) {
    CommunicationRow& r = all.emplace_back(CommunicationRow{.kind = kind, .phase = phase});
    for (const Bytes b : sizes) {
      if (b == Bytes{}) continue;
      r.count += times;
      r.bytes += b * times;
      r.time += time(network, kind, b, holders(layout), between_replicas(layout)) * static_cast<double>(times);
    }
    if (r.count == 0) all.pop_back();
  }
};

/// A gradient's bytes in a collective of another type.
inline std::vector<Bytes> in_type(std::vector<Bytes> all, DType own, const std::optional<DType>& other) {
  if (!other) return all;
  for (Bytes& b : all) b = size_of(Elements(b.value() / size_of(Elements(1), own).value()), *other);
  return all;
}

}  // namespace vlmest::parallel::several
