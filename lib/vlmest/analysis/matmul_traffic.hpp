// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <vlmest/device/device.hpp>
#include <vlmest/op/cost.hpp>

namespace vlmest {

/// The order in which a kernel of cuBLAS computes the tiles of a result of m rows and n columns. A name such as
/// nvjet_sm90_tst_160x256_64x4_1x2_h_bz_coopA_TNN tells it, in cuBLAS' terms, whose rows are our columns: tiles of 256
/// rows and 160 columns, clusters of two along m, h.
struct TileWalk {
  int tile_m = 128, tile_n = 256;
  int cluster_m = 1, cluster_n = 1;
  int split = 1;  ///< pieces of the inner dimension, whose fp32 sums lie in the workspace between two kernels
  /// Bands of columns, each computed along m: h, as cuBLAS calls it, bit 1 of the custom option. Otherwise of rows: v.
  bool column_bands = true;
  /// Kernels of CUTLASS (algorithms 23 and 24) start a thread block for each tile and every band at the same end; the
  /// others keep their blocks and turn at the end of a band.
  bool turns = true;
};

namespace traffic {

/// Clusters that run at once. Of four and more, not every processor of a group finds one: 30 and 15 is the most that
/// cuBLAS starts on 132 processors (5083 traced products).
inline int clusters_at_once(const TileWalk& w, const Device& d) {
  const int size = std::max(1, w.cluster_m * w.cluster_n), all = std::max(1, d.multiprocessors);
  return std::max(1, size < 4 ? all / size : all * 30 / (132 * size / 4));
}

/// Tiles across a band. Of kernels that turn: the root of the number of clusters at once, times the tile's side along
/// the band by that across it (read off the traffic of 60 products with little depth; each fixes it within one). Of
/// CUTLASS: GemmIdentityThreadblockSwizzle<8>, which 1218 traced grids follow.
inline int tiles_across(const TileWalk& w, std::int64_t tiles_n, const Device& d) {
  if (!w.turns) return tiles_n >= 6 ? 8 : tiles_n >= 3 ? 4 : tiles_n >= 2 ? 2 : 1;
  const double ratio = static_cast<double>(w.tile_n) / w.tile_m;
  const double square = clusters_at_once(w, d) * (w.column_bands ? ratio : 1 / ratio);
  return std::max(1, static_cast<int>(std::sqrt(square) + 0.5));
}

/// The share of the L2 that holds what was used last. Both of its halves keep a copy of what they read, so that
/// operands count twice. This and the next three were fitted together to 110 products, every other one of 219 with more
/// than two waves of tiles (bf16, H200, CUPTI's counters).
inline constexpr double kept = 0.78;
/// Clusters that started together drift apart: a step's time varies by this much of a step, independently.
inline constexpr double drift = 0.21;
/// As many clusters drift as one: the gaps between their uses of a panel are those of bunches, not of single ones.
inline constexpr double bunch = 11.5;
/// The part of the whole spread of clusters in time over which the panels lie that the cache has to hold.
inline constexpr double spread = 0.4;
/// Where rows of an operand or of the result do not begin at multiples of 128 bytes, each step's part of a row lies in
/// two lines of the L2 (at odd multiples of 16 bytes it was counted to serve 1.28 times the bytes), and clusters drift
/// this much more: read off every other one of 125 products, most of them such.
inline constexpr double unaligned = 1.3;

/// Counts the panels of both operands that a product reads. Bands lie side by side along x and run along y. Lengths are
/// elements, times are steps of the main loop: 128 bytes of each row. All clusters of a wave begin the first tiles
/// together and go through the depth in step, so that each panel is read once for all of them; later waves find what
/// the cache still holds. With time the waves smear out, by as much as the clusters have drifted apart.
class Walk {
 public:
  Walk(double m, double n, double steps, double element, const TileWalk& w, const Device& d)
      : steps_(steps), element_(element), turns_(w.turns), l2_(static_cast<double>(d.l2.value())) {
    x_ = w.column_bands ? n : m;
    y_ = w.column_bands ? m : n;
    const int cx = w.column_bands ? w.cluster_n : w.cluster_m, cy = w.column_bands ? w.cluster_m : w.cluster_n;
    tx_ = 1.0 * cx * (w.column_bands ? w.tile_n : w.tile_m);
    ty_ = 1.0 * cy * (w.column_bands ? w.tile_m : w.tile_n);
    nx_ = std::max(1.0, std::ceil(x_ / tx_));
    ny_ = std::max(1.0, std::ceil(y_ / ty_));
    const auto tiles_n = static_cast<std::int64_t>(std::min(std::ceil(n / w.tile_n), 8.0));
    band_ = std::min(std::max(1.0, std::floor(1.0 * tiles_across(w, tiles_n, d) / cx)), nx_);
    wave_ = std::min<double>(std::min(clusters_at_once(w, d), max_clusters), nx_ * ny_);
    along_ = std::min({wave_ / band_, ny_, y_ / ty_}) * ty_;
    across_ = std::min(x_, std::max(band_ * tx_, wave_ * tx_ * ty_ / along_));
    // Of a normal distribution's quantiles: the logistic's of the same deviation.
    for (int i = 0; i < wave_; ++i) {
      const double below = (i + 0.5) / wave_;
      rank_[static_cast<std::size_t>(i)] = 0.5513 * std::log(below / (1 - below));
    }
    range_ = rank_[static_cast<std::size_t>(wave_) - 1] - rank_[0];
    const auto whole = [&](double length) { return std::fmod(length * element, 128.0) == 0; };
    drift_ = drift * (whole(steps * 128 / element) && whole(n) ? 1 : unaligned);
  }

  /// Rows of both operands that are read, in elements.
  [[nodiscard]] double panels() const {
    const double bands = std::ceil(nx_ / band_);
    // Of very large products some bands, and some rows of tiles, stand for all.
    const double each = std::ceil(bands / 256), apart = std::ceil(ny_ / 1024);
    double sum = 0;
    for (double j = 0; j < bands; j += j == 0 ? 1 : each) {
      const double stands = j == 0 ? 1 : std::min(each, bands - j);
      const double w = std::min(band_, nx_ - j * band_), first = j * band_ * ny_;
      const double width = std::min(x_, (j * band_ + w) * tx_) - j * band_ * tx_;
      double read = width;
      for (double v = 0; v < ny_; v += apart) {
        const double rows = std::min(apart, ny_ - v), s = first + v * w, wave = std::floor((s + w - 1) / wave_) * wave_;
        if (v > 0) read += rows * width * since_last_row(s, w);
        const bool back = turns_ && std::fmod(j, 2) == 1;
        const double y = back ? ny_ - v - rows : v, height = std::min(y_, (y + rows) * ty_) - y * ty_;
        const double before = turns_ ? first - v * band_ - 1 : s - band_ * ny_;
        read += height * (j == 0 ? 1 : lost(before, s, turns_ ? v + 1 : ny_));
        if (wave > s) read += height * lost(wave - 1, wave, 0);  // the end of a wave cuts the row
      }
      sum += stands * read;
    }
    return sum;
  }

 private:
  static constexpr int max_clusters = 1024;

  /// The share of a band's panels that a row of w clusters, the first of them number s, reads again. Where the start of
  /// a wave parts the row's use of a column from the row before's, more lies between.
  [[nodiscard]] double since_last_row(double s, double w) const {
    if (w >= wave_) return lost(s - w, s, 0);
    const double start = std::floor((s + w - 1) / wave_) * wave_;
    const double from = std::max(0.0, start - s), to = std::min(w - 1, start - s + w - 1);
    const double parted = std::max(0.0, to - from + 1);
    const auto column = [&](double c) { return lost(s - w + std::floor(c), s + std::floor(c), 0); };
    double sum = parted > 0 ? parted * column((from + to) / 2) : 0;
    if (parted < w) sum += (w - parted) * column(parted == 0 ? (w - 1) / 2 : from == 0 ? (to + w) / 2 : (from - 1) / 2);
    return sum / w;
  }

  [[nodiscard]] double wave_of(double cluster) const { return std::floor(cluster / wave_); }
  [[nodiscard]] double rank_of(double cluster) const {
    const double i = std::clamp(cluster - wave_of(cluster) * wave_, 0.0, wave_ - 1);
    return rank_[static_cast<std::size_t>(i)];
  }
  /// Steps by which the clusters of a wave deviate: a random walk, until the next wave's first is reached.
  [[nodiscard]] double deviation(double wave) const {
    return range_ > 0 ? std::min(drift_ * std::sqrt(steps_ * wave), steps_ / range_) : 0;
  }

  /// The share of a panel, used by cluster a, that is lost when b uses it. rows: of tiles, computed between two bands'
  /// uses of a row's panel.
  [[nodiscard]] double lost(double a, double b, double rows) const {
    const double by = deviation(wave_of(b)), apart = by * (rank_of(b) - rank_of(a));
    const double gap = (wave_of(b) - wave_of(a)) * steps_ + apart;
    if (gap <= 0) return 0;
    const double size = l2_ * kept, result = element_ * wave_ * tx_ * ty_ / steps_;  // written in a step
    if (rows > 0 && gap >= steps_) {
      const double passing = std::min(std::max(rows * ty_, along_), y_) + 2 * across_;
      return 2 * 128 * passing * steps_ + result * gap > size ? 1 : 0;
    }
    // Steps after which the cache is full. A wave of several rows begins and ends within one, and touches one more.
    const double along = std::min(y_, along_ + (band_ > 1 ? ty_ : 0)), wide = std::min(steps_, by * range_ * spread);
    double fills = (size / 256 - across_ * wide) / (along + across_ + result / 256);
    if (fills + wide > steps_) fills = (size / 256 - across_ * steps_) / (along + result / 256);
    // The gap is a random one: that of bunches, and what both drifted in this tile.
    const double between = std::max(1.0, std::abs(b - wave_of(b) * wave_ - (a - wave_of(a) * wave_)));
    const double deviates = std::sqrt(apart * apart * bunch / between + 2 * deviation(1) * deviation(1));
    return std::clamp((gap - fills) / (2 * std::sqrt(3.0) * std::max(deviates, 1e-9)) + 0.5, 0.0, 1.0);
  }

  double steps_, element_;
  bool turns_;
  double l2_;
  double x_ = 0, y_ = 0;           ///< the result across and along bands
  double tx_ = 0, ty_ = 0;         ///< a cluster's part of it
  double nx_ = 0, ny_ = 0;         ///< clusters across and along
  double band_ = 1, wave_ = 1;     ///< clusters across a band; in a wave
  double along_ = 0, across_ = 0;  ///< panels that a wave reads
  double drift_ = 0, range_ = 0;
  std::array<double, max_clusters> rank_{};
};

/// Bytes of DRAM that one product moves beyond its operands and its result, each once.
struct Again {
  double read = 0, written = 0;
};

/// The rows are as long as the product says: lda and ldb are not looked at. Not covered: results whose rows begin
/// within a sector of 32 bytes, which add up to 5 % where the inner size is below 150; and small tiles with rows of
/// operands not at 128 bytes, which the L2's bandwidth bounds (4 of 383 products, up to twice the bytes).
inline Again read_and_written_again(double m, double n, double k, double element, const TileWalk& w, const Device& d) {
  const double split = std::max(1, w.split), part = std::max(1.0, k / split);
  const Walk walk(m, n, part * element / 128, element, w, d);
  // Partial sums are written, and read by the kernel that adds them.
  const double sums = split > 1 ? 4 * split * m * n : 0;
  return {std::max(0.0, walk.panels() - (m + n)) * k * element + sums, sums};
}

}  // namespace traffic
}  // namespace vlmest
