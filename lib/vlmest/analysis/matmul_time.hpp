// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <vlmest/device/device.hpp>
#include <vlmest/op/matmul.hpp>

namespace vlmest {

/// The tile of a result that one thread block computes, and into how many pieces the inner dimension is split.
struct Tiling {
  int m = 0, n = 0, split = 1;
  std::int64_t tiles = 0;  ///< of the result, times the split
};

/// How long a product takes, and why.
struct TiledTime {
  Seconds time{};
  Seconds compute{};  ///< of the arithmetic in the waves of tiles
  Seconds memory{};   ///< of the compulsory bytes
  Seconds start{};    ///< that neither arithmetic nor bytes explain: the launch, and pipelines that wait for operands
  Tiling tiling;
};

namespace tiled {

/// Sides of the tiles that cuBLAS 13 chooses among on compute capability 9.0, read off the names of its kernels
/// (nvjet_…_256x152_…): one side is 64 to 256, the other any multiple of 8.
inline constexpr std::array<int, 20> sides{8,   16,  24,  32,  40,  48,  56,  64,  80,  96,
                                           112, 128, 144, 160, 176, 192, 208, 224, 240, 256};
constexpr bool is_long(int side) { return side >= 64 && side % 64 == 0; }
inline constexpr int largest_tile = 256 * 160;
inline constexpr std::array<int, 7> splits{2, 3, 4, 6, 8, 12, 16};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Depth of one step of the main loop: 128 bytes of each row (cuBLAS' kernels: 64 elements of 16 bits).
constexpr std::int64_t step_depth(DType t) { return std::max<std::int64_t>(1, 1024 / bits(t)); }

/// Bytes at whose multiples every row of both operands and of the result begins, up to 16.
constexpr int row_alignment(const Matmul& o) {
  const auto row = [&](std::int64_t n) { return n * bits(o.dtype) / 8; };
  const std::int64_t a = row(o.lda > 0 ? o.lda : o.k), b = row(o.ldb > 0 ? o.ldb : o.k), out = row(o.n);
  for (int bytes = 16; bytes > 2; bytes /= 2)
    if (a % bytes == 0 && b % bytes == 0 && out % bytes == 0) return bytes;
  return 2;
}

/// a and b overlapping: the p-norm, from their sum (p = 1) to the larger one.
inline Seconds overlapped(Seconds a, Seconds b, double p) {
  const double large = std::max(a.value, b.value), small = std::min(a.value, b.value);
  return {large <= 0 ? 0 : large * std::pow(1 + std::pow(small / large, p), 1 / p)};
}
/// The same for p = 4, by roots.
inline Seconds overlapped(Seconds a, Seconds b) {
  const double x = a.value * a.value, y = b.value * b.value;
  return {std::sqrt(std::sqrt(x * x + y * y))};
}

}  // namespace tiled

/// A product as waves of tiles: every multiprocessor computes one tile at a time, so a result takes
/// ceil(tiles / multiprocessors) times a tile; a tile is the steps of its main loop and the writing of its elements.
/// The library chooses the tile that is fastest (cuBLAS' heuristic, taken as exact), and splits the inner dimension
/// where the tiles do not fill the device. Reading and writing overlap with it. NVIDIA, Matrix Multiplication
/// Background User's Guide, sections "Tile Quantization" and "Wave Quantization", describes the effects; the parameters
/// are fitted to measured products.
inline TiledTime matmul_time(const Matmul& o, const Device& d, const MatmulEfficiency& e) {
  TiledTime best;
  const Cost c = cost(o);
  const std::int64_t units = d.multiprocessors, depth = tiled::step_depth(o.dtype);
  const bool tensor_core = c.engine == Engine::tensor_core;
  const double unit_rate = peak(d, o.dtype, tensor_core).value * e.rate / static_cast<double>(units);
  const double per_element_step = 2.0 * static_cast<double>(depth) / unit_rate;
  best.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};

  // How many tiles of each side cover the result.
  std::array<std::int64_t, tiled::sides.size()> down{}, across{};
  for (std::size_t i = 0; i < tiled::sides.size(); ++i) {
    down[i] = checked_mul(tiled::ceil_div(o.m, tiled::sides[i]), o.batch);
    across[i] = tiled::ceil_div(o.n, tiled::sides[i]);
  }
  // ceil(tiles / units) without a division, which would take most of the time of the search below.
  const double share = 1 / static_cast<double>(units);
  const auto waves_of = [&](std::int64_t tiles) {
    auto w = static_cast<std::int64_t>(static_cast<double>(tiles) * share);
    if (w * units < tiles) ++w;
    return static_cast<double>(w);
  };
  checked_mul(checked_mul(down[0], across[0]), tiled::splits.back());  // no tiling has more tiles
  double shortest = std::numeric_limits<double>::infinity();
  const auto attempt = [&](int split) {
    const auto steps = static_cast<double>(tiled::ceil_div(o.k, depth * split));
    double compute = std::numeric_limits<double>::infinity();
    Tiling chosen;
    for (std::size_t i = 0; i < tiled::sides.size(); ++i)
      for (std::size_t j = 0; j < tiled::sides.size(); ++j) {
        const int tm = tiled::sides[i], tn = tiled::sides[j];
        if (!(tiled::is_long(tm) || tiled::is_long(tn)) || tm * tn > tiled::largest_tile) continue;
        const std::int64_t tiles = down[i] * across[j] * split;
        const double waves = waves_of(tiles);
        const double elements = tm * tn;
        const double t =
            waves * (steps * std::max(elements * per_element_step, e.step.value) + elements * e.epilogue.value);
        if (t < compute) {
          compute = t;
          chosen = {tm, tn, split, tiles};
        }
      }
    const double busy = compute + e.fill.value;
    const double second_pass = split > 1 ? e.split.value : 0;
    const double t = tiled::overlapped({busy}, best.memory, e.overlap).value + second_pass;
    if (t >= shortest) return;
    shortest = t;
    best.compute = {waves_of(chosen.tiles) * chosen.m * chosen.n * (steps * per_element_step + e.epilogue.value)};
    best.start = {e.start.value + second_pass + busy - best.compute.value};
    best.tiling = chosen;
  };
  attempt(1);
  if (best.tiling.tiles < units)
    for (const int s : tiled::splits)
      if (tiled::ceil_div(o.k, depth * s) >= 4) attempt(s);
  const double rows = static_cast<double>(o.m) * static_cast<double>(o.batch);
  best.time = {(e.start.value + shortest) * e.correction({rows, static_cast<double>(o.n), static_cast<double>(o.k)})};
  return best;
}

/// The parameters of the kernels that run a product.
inline const MatmulEfficiency& efficiency(const Efficiency& e, const Matmul& o) {
  switch (o.dtype) {
    case DType::fp32:
    case DType::fp64:
    case DType::complex64:
    case DType::complex128: return e.fp32;
    case DType::tf32: return e.tf32;
    case DType::fp8:
    case DType::int8: return e.fp8;
    default: break;
  }
  switch (tiled::row_alignment(o)) {
    case 16: return e.half.bytes16;
    case 8: return e.half.bytes8;
    case 4: return e.half.bytes4;
    default: return e.half.bytes2;
  }
}
inline TiledTime matmul_time(const Matmul& o, const Device& d) {
  return matmul_time(o, d, efficiency(d.efficiency, o));
}

}  // namespace vlmest
