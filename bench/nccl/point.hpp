// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include <bench/harness/filter.hpp>

#include <vlmest/op/collective.hpp>
#include <vlmest/unit/error.hpp>

/// Which collectives `vlmest bench --suite nccl` measures: in numbers, without CUDA.
namespace vlmest::bench::nccl {

struct Point {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes bytes{};  ///< of the tensor when it is whole
};

inline std::string name(const Point& p, int ranks) {
  return "nccl/" + std::string(vlmest::name(p.kind)) + "/ranks:" + std::to_string(ranks) +
         "/bytes:" + std::to_string(p.bytes.value());
}

/// A kibibyte to a gibibyte in powers of two, which curves are fitted to, and one between each two of them, which tell
/// what the curves are worth. Ranks that are no power of two divide them but for a rest; each part is whole elements.
inline std::vector<Point> points(const std::vector<std::string>& kinds, const std::string& filter, int ranks) {
  constexpr std::int64_t least = std::int64_t{1} << 10, most = std::int64_t{1} << 30, element = 2;
  for (const std::string& k : kinds)
    if (!collective_kind(k))
      throw Error("bench", "'" + k + "' is no collective",
                  "known: all_reduce, reduce_scatter, all_gather, all_to_all, send");
  const std::regex wanted = read_filter(filter);
  std::vector<Point> r;
  const auto add = [&](CollectiveKind kind, std::int64_t bytes) {
    const std::int64_t parts = element * ranks;
    const Point p{kind, Bytes(bytes / parts * parts)};
    if (p.bytes > Bytes{} && std::regex_search(name(p, ranks), wanted)) r.push_back(p);
  };
  for (const CollectiveKind kind : collective_kinds) {
    bool chosen = kinds.empty();
    for (const std::string& k : kinds) chosen |= k == vlmest::name(kind);
    for (std::int64_t bytes = least; chosen && bytes <= most; bytes *= 2) {
      add(kind, bytes);
      if (bytes < most) add(kind, bytes / 2 * 3);
    }
  }
  if (r.empty()) throw Error("bench", "no collective is left to measure", "--list shows what there is");
  return r;
}

}  // namespace vlmest::bench::nccl
