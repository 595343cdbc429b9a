// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/analysis/matmul_time.hpp>
#include <vlmest/op/memory.hpp>

namespace vlmest {

constexpr const MemoryEfficiency& efficiency(const MemoryEfficiencies& e, Access a) {
  switch (a) {
    case Access::functions: return e.functions;
    case Access::cast: return e.cast;
    case Access::strided: return e.strided;
    case Access::transposed: return e.transposed;
    case Access::concatenation: return e.concatenation;
    case Access::gather: return e.gather;
    case Access::reduction: return e.reduction;
    case Access::rows: return e.rows;
    default: return e.contiguous;
  }
}

/// How long kernels that move bytes take: each starts, then moves its share, at the speed of the memory or of the
/// threads that compute where each element lies, whichever is slower.
inline TiledTime memory_time(Bytes moved, Elements walked, int kernels, const Device& d, const MemoryEfficiency& e) {
  TiledTime r;
  if (kernels == 0) return r;
  r.start = e.start * static_cast<double>(kernels);
  // The share that comes from the cache: all up to half of it, nothing beyond.
  const double share = 2 - 2 * static_cast<double>(moved.value()) / static_cast<double>(d.l2.value());
  const double cached = std::clamp(share, 0.0, 1.0);
  r.memory = moved / Bandwidth{d.dram.value * e.bandwidth} * (1 - cached + cached / e.cached);
  r.compute = e.element * static_cast<double>(walked.value());
  r.time = r.start + tiled::overlapped(r.memory, r.compute);
  return r;
}

}  // namespace vlmest
