// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>

#include <vlmest/analysis/matmul_time.hpp>
#include <vlmest/op/memory.hpp>
#include <vlmest/op/norm.hpp>
#include <vlmest/op/softmax.hpp>

namespace vlmest {

/// Where an op finds what it reads.
enum class Operands : std::uint8_t {
  from_cache,  ///< in the L2 cache as far as they fit: inside a model the op before has just written them
  from_dram,   ///< nothing of them is in the cache: an op on its own
};

/// How long kernels that move bytes take: each starts, then moves its share, at the speed of the memory or of the
/// threads that compute where each element lies, whichever is slower. Of the bytes, the cache has all up to half of its
/// size and nothing beyond. What comes from DRAM arrives after its latency, and once more so where there is enough for
/// requests to queue (Little's law: bandwidth times latency must be on the way).
inline OpTime memory_time(Bytes read, Bytes written, Elements walked, int kernels, const Device& d,
                          const MemoryEfficiency& e, Operands operands = Operands::from_cache) {
  OpTime r;
  if (kernels == 0) return r;
  r.start = e.start * static_cast<double>(kernels);
  const Bytes moved = read + written;
  const double share = 2 - 2 * static_cast<double>(moved.value()) / static_cast<double>(d.l2.value());
  const double cached = operands == Operands::from_dram ? 0.0 : std::clamp(share, 0.0, 1.0);
  Seconds dram = moved / Bandwidth{d.dram.value * e.bandwidth};
  if (e.mixed > 0 && moved > Bytes{})
    dram = dram * (1 + e.mixed * 2 * static_cast<double>(std::min(read, written).value()) /
                           static_cast<double>(moved.value()));
  if (const double missed = dram.value * (1 - cached), latency = e.latency.value; latency > 0 && read > Bytes{})
    r.start += Seconds{(1 - cached) * latency * (1 + missed / (missed + latency))};
  r.memory = dram * (1 - cached + cached / e.cached);
  r.compute = e.element * static_cast<double>(walked.value());
  r.time = r.start + tiled::overlapped(r.memory, r.compute);
  return r;
}
inline OpTime memory_time(Bytes moved, Elements walked, int kernels, const Device& d, const MemoryEfficiency& e) {
  return memory_time(moved, Bytes{}, walked, kernels, d, e);
}

/// How a row lies in the registers of the threads that share it, as kernels/cuda/rows.cuh does it: whole warps, or
/// a power of two of a warp's threads, of 2, 4 or 8 vectors of 16 bytes each; longer rows are read again.
struct HeldRow {
  std::int64_t elements = 0;  ///< that all its threads have room for
  std::int64_t vectors = 0;   ///< that a thread goes through, one after the other
};

constexpr HeldRow held_row(std::int64_t width, DType t) {
  const std::int64_t whole = std::max<std::int64_t>(1, 128 / bits(t));
  const std::int64_t wide = std::min(whole, width & -width), count = tiled::ceil_div(width, wide);
  const auto of = [&](std::int64_t threads, std::int64_t vectors) {
    return HeldRow{checked_mul(checked_mul(threads, vectors), wide), vectors};
  };
  const auto warps = [&](std::int64_t vectors) { return tiled::ceil_div(count, vectors * 32) * 32; };
  if (count <= 64)
    return of(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(tiled::ceil_div(count, 2)))), 2);
  if (warps(4) <= 256) return of(warps(4), 4);
  if (warps(8) <= 512) return of(warps(8), 8);
  return of(512, 2 * tiled::ceil_div(count, 512));
}

/// A norm or softmax that keeps each row on the chip. `passes`: how often every thread goes over its part of the row,
/// for each reduction and for the result.
inline OpTime row_time(const Cost& c, std::int64_t rows, std::int64_t width, DType t, int passes, const Device& d,
                       const RowEfficiency& e, Operands operands) {
  const HeldRow row = held_row(width, t);
  const Elements walked(checked_mul(checked_mul(rows, row.elements), passes));
  OpTime r = memory_time(c.read, c.written, walked, 1, d, e, operands);
  const Seconds steps = e.vector * static_cast<double>(row.vectors * passes);
  r.start += steps;
  r.time += steps;
  return r;
}
inline OpTime fused_time(const Norm& o, const Device& d, Operands operands) {
  return row_time(cost(o), o.rows, o.width, o.dtype, o.kind == Norm::Kind::layer_norm ? 3 : 2, d,
                  d.efficiency.memory.fused_norm, operands);
}
inline OpTime fused_time(const Softmax& o, const Device& d, Operands operands) {
  return row_time(cost(o), o.rows, o.width, o.in, 3, d, d.efficiency.memory.fused_softmax, operands);
}

}  // namespace vlmest
