// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include <vlmest/analysis/few_rows_time.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/op/matmul.hpp>

namespace vlmest {

namespace tiled {

/// Longer sides of the tiles that cuBLAS 13 chooses among on compute capability 9.0, read off the names of its kernels
/// (nvjet_…_256x152_…), and the longest other side, which is any multiple of 8.
inline constexpr std::array<std::array<int, 2>, 4> copied_tiles{{{64, 256}, {128, 256}, {192, 208}, {256, 160}}};
/// Tiles of its older kernels (cutlass_80_…_128x64_…), and turned.
inline constexpr std::array<std::array<int, 2>, 11> loaded_tiles{{{16, 16},
                                                                  {32, 16},
                                                                  {32, 32},
                                                                  {64, 16},
                                                                  {64, 32},
                                                                  {64, 64},
                                                                  {128, 32},
                                                                  {128, 64},
                                                                  {128, 128},
                                                                  {256, 64},
                                                                  {256, 128}}};
/// Pieces into which the inner dimension may be cut, and how many steps cuBLAS leaves to each at least, read off the
/// scratch that its choices ask for (one partial result a piece).
inline constexpr std::array<int, 9> copied_splits{2, 3, 4, 5, 6, 8, 10, 12, 14};
/// The shorter side of tiles, at least, where both sides of a result are longer than `broad` and it takes more than one
/// wave: 11,500 of 11,700 such choices.
inline constexpr int least_side = 96, broad = 256;
/// What the shorter of arithmetic and memory adds to the longer one while tilings are compared: a straight line in
/// place of overlapped(), which takes a power. It is the one nearest to the norm by least squares over all ratios of
/// the two (tests/analysis/tile_search_test.cpp), for p = 2.7, the `overlap` that an H200's products in half types are
/// fitted to (2.79). The time of the tiling that is chosen comes from the norm itself.
inline constexpr double shorter_share = 0.2;
inline constexpr std::int64_t copied_steps = 20, loaded_steps = 2, most_pieces = 40;

/// The search for the fastest tiling of one product.
class Search {
 public:
  Search(const Matmul& o, const Device& d, const MatmulEfficiency& e, Seconds memory)
      : o_(o),
        e_(e),
        depth_(static_cast<double>(step_depth(o.dtype))),
        units_(std::max(d.multiprocessors, 1)),
        share_(1 / units_),
        memory_(memory.value),
        copied_(copies_rows(o)) {
    const bool tensor_core = o.dtype != DType::fp32 && o.dtype != DType::fp64;
    const double unit_rate = peak(d, o.dtype, tensor_core).value * e.rate * share_;
    per_element_ = 2 * depth_ / unit_rate;
    const int row = operand_alignment(o), result = alignment(o.n, o.dtype);
    const double per_row = e.load.value * (!copied_ || row == 128 ? 1 : row == 16 ? e.half_sectors : e.sectors);
    per_row_shared_ = copied_ ? per_row * e.shared_load : 0;
    per_row_ = per_row - per_row_shared_;
    per_result_ = e.epilogue.value * (!copied_ || result == 128 ? 1
                                      : result == 16            ? e.half_sectors_written
                                                                : e.sectors_written);
  }

  struct Best {
    ProductTiling tiling;
    double loops = 0, busy = 0, second_pass = 0;
  };
  Best best() {
    if (copied_)
      copied();
    else
      loaded();
    return best_;
  }

 private:
  void copied() {
    split(1);
    const double per_piece = static_cast<double>(copied_steps) * depth_, k = static_cast<double>(o_.k);
    if (static_cast<double>(best_.tiling.tiles) * share_ >= 1) return;
    for (const int pieces : copied_splits) {
      if (k <= per_piece * pieces - depth_) break;
      split(pieces);
    }
  }

  /// Of each longer side, the other side with which the tiles just fill the fewest waves, and one more.
  void split(int pieces) {
    steps(pieces);
    for (const auto& [side, most] : copied_tiles)
      for (const bool along_n : {true, false}) {
        const auto across = static_cast<double>(along_n ? o_.m : o_.n),
                   down = static_cast<double>(along_n ? o_.n : o_.m);
        const double columns = up(down / side) * static_cast<double>(o_.batch) * pieces, each = 1 / columns;
        double waves = up(columns * up(across / most) * share_);
        int last = 0;
        for (int i = 0; i < 2 && last != 8; ++i, ++waves) {
          const double rows = down_to(waves * units_ * each + 1e-9);
          if (rows < 1) continue;
          const int other = 8 * static_cast<int>(up(across / (8 * rows)));
          if (other > most || other == last) continue;
          last = other;
          if (waves > 1 && std::min(other, side) < least_side && std::min(o_.m, o_.n) >= broad) continue;
          const double tiles = columns * up(across / other);
          along_n ? attempt(other, side, tiles) : attempt(side, other, tiles);
        }
      }
  }

  void loaded() {
    const double steps_in_all = up(static_cast<double>(o_.k) / depth_);
    for (const auto& [a, b] : loaded_tiles)
      for (const auto& [tm, tn] : {std::array{a, b}, std::array{b, a}}) {
        const double tiles =
            up(static_cast<double>(o_.m) / tm) * up(static_cast<double>(o_.n) / tn) * static_cast<double>(o_.batch);
        steps(1);
        attempt(tm, tn, tiles);
        const double most = std::min(static_cast<double>(most_pieces), down_to(steps_in_all / loaded_steps));
        for (const double waves : {1.0, 2.0}) {
          const double pieces = std::min(most, down_to(waves * units_ / tiles + 1e-9));
          if (pieces < 2) continue;
          steps(static_cast<int>(pieces));
          attempt(tm, tn, tiles * pieces);
        }
        if (a == b) break;
      }
  }

  void steps(int pieces) {
    pieces_ = pieces;
    steps_ = up(static_cast<double>(o_.k) / (depth_ * pieces));
    const double results = static_cast<double>(o_.m) * static_cast<double>(o_.n) * static_cast<double>(o_.batch);
    second_pass_ = pieces > 1 ? e_.split.value + e_.reduction.value * results * (pieces + 1) : 0;
  }

  void attempt(int tm, int tn, double tiles) {
    const double exact = tiles * share_, whole = up(exact), waves = whole - (1 - e_.tail) * (whole - exact);
    const double elements = static_cast<double>(tm) * tn;
    const double step =
        std::max(elements * per_element_, (tm + tn) * (per_row_ + per_row_shared_ * std::min(exact, 1.0)));
    const double busy = waves * (steps_ * std::max(step, e_.step.value) + elements * per_result_) + e_.fill.value;
    const double t = std::max(busy, memory_) + shorter_share * std::min(busy, memory_) + second_pass_;
    if (t >= shortest_) return;
    shortest_ = t;
    best_ = {{tm, tn, pieces_, static_cast<std::int64_t>(tiles)},
             waves * (steps_ * step + elements * per_result_),
             busy,
             second_pass_};
  }

  const Matmul& o_;
  const MatmulEfficiency& e_;
  double depth_, units_, share_, memory_;
  bool copied_;
  double per_element_ = 0, per_row_ = 0, per_result_ = 0;  ///< seconds: of a step the first two
  double per_row_shared_ = 0;  ///< where every multiprocessor loads; in proportion where fewer do
  int pieces_ = 1;
  double steps_ = 0, second_pass_ = 0;
  double shortest_ = std::numeric_limits<double>::infinity();
  Best best_;
};

}  // namespace tiled

/// A product as waves of tiles: every multiprocessor computes one tile at a time, so a result takes
/// ceil(tiles / multiprocessors) times a tile; a tile is the steps of its main loop and the writing of its elements. A
/// step takes as long as its arithmetic or the rows of its operands from the L2 cache. The library chooses the tile
/// that is fastest (cuBLAS' heuristic, taken as exact), and splits the inner dimension where the tiles do not fill the
/// device. Reading and writing DRAM overlap with it. NVIDIA, Matrix Multiplication Background User's Guide, sections
/// "Tile Quantization" and "Wave Quantization", describes the effects; the parameters are fitted to measured products.
inline OpTime matmul_time(const Matmul& o, const Device& d, const MatmulEfficiency& e) {
  OpTime r;
  // Where nothing is to be computed no kernel runs (aten/src/ATen/native/cuda/Blas.cpp, addmm_out_cuda_impl).
  if (o.m == 0 || o.n == 0 || o.batch == 0) return r;
  const Cost c = cost(o);
  r.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  // Half a sector at each end of a tile's row is read before it is written.
  if (tiled::copies_rows(o) && tiled::alignment(o.n, o.dtype) == 16)
    r.memory += c.written / Bandwidth{d.dram.value * e.bandwidth} * e.half_sectors_rewritten;
  // No tiling has more tiles, and the numbers of tiles are exact as floating-point ones.
  checked_mul(checked_mul(checked_mul(o.m, o.n), o.batch), tiled::most_pieces);
  const auto found = tiled::Search(o, d, e, r.memory).best();
  r.tiling = found.tiling;
  r.compute = {found.loops};
  r.start = {e.start.value + found.second_pass + found.busy - found.loops};
  r.time = {e.start.value + found.second_pass + tiled::overlapped({found.busy}, r.memory, e.overlap).value};
  const double rows = static_cast<double>(o.m) * static_cast<double>(o.batch);
  r.time = r.time * e.correction({rows, static_cast<double>(o.n), static_cast<double>(o.k)});
  if (o.bias) {
    r.start += e.bias;
    r.time += e.bias;
  }
  return r;
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
  const int row = tiled::row_alignment(o);
  if (row == 16) return e.half.bytes16;
  return row >= 4 ? e.half.bytes4 : e.half.bytes2;
}
inline OpTime matmul_time(const Matmul& o, const Device& d) {
  if (few_rows::runs(o)) return few_rows::time(o, d, d.efficiency.half.few_rows);
  return matmul_time(o, d, efficiency(d.efficiency, o));
}

}  // namespace vlmest
