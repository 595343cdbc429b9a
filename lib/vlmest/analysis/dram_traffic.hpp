// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <vlmest/analysis/matmul_traffic.hpp>
#include <vlmest/device/device.hpp>
#include <vlmest/op/cufft_passes.hpp>
#include <vlmest/op/op.hpp>

namespace vlmest {

/// What crosses the pins of the memory while an op runs whose operands were not in the L2 cache. At least the
/// compulsory bytes of Cost; more where an op uses data again after the cache has lost them.
struct DramTraffic {
  Bytes read{}, written{};
};

namespace traffic {

/// The share of some data that the L2 no longer holds after `between` further bytes went through it. A cache that
/// always drops the oldest would hold all until it is full; this one loses some earlier, as one would that holds twice
/// what both of its halves read and replaces lines by sets. The two ends, in parts of its size, were fitted, with the
/// three lengths below, to the traffic of 125 products (bf16, H200, every other one of 250).
inline constexpr double holds_all = 0.1, holds_none = 1;
inline double lost(double between, Bytes l2) {
  const double filled = between / static_cast<double>(l2.value());
  return std::clamp((filled - holds_all) / (holds_none - holds_all), 0.0, 1.0);
}

/// Elements of a result that a multiprocessor computes at a time: those of a tile of 128 x 256, whose fp32 sums take
/// half of its 64 Ki registers. cuBLAS' other large tiles, of 192 x 192 or 256 x 144 say, are within a quarter of it.
inline constexpr double tile_elements = 32768;
/// Tiles are computed band by band, so that a wave of them is not much longer than broad. How broad a band is depends
/// on the kernel that cuBLAS' heuristics choose, which are not known: single products fit 1024 to 6144 elements. These
/// widths, in units of 256, fit the 125 best: of bands of rows of the result, and of bands of columns.
inline constexpr double rows_in_band = 1280, columns_in_band = 3584;
/// A wave begins and ends within a row of tiles across the band, so that two waves read the operand of that row.
inline constexpr double shared_row = 256;

/// Elements of both operands, divided by the inner size, that a product reads whose bands, `band` wide, run along one
/// side of the result: `across` is that over which they lie side by side.
inline double panels_read(double across, double along, double band, double depth, double element, const Device& d) {
  const double wave = tile_elements * std::max(1, d.multiprocessors);
  const double bands = std::ceil(across / band), width = std::min(across, band);
  const double length = std::min(wave / width, along);
  const double waves = std::max(along * width / wave, 1.0);
  // What passes through the cache until the same panels are wanted: in the next wave, in the next band.
  const auto passing = [&](double rows) { return element * ((width + rows) * depth + width * rows); };
  const double by_next_wave = lost(passing(length), d.l2), by_next_band = lost(passing(along), d.l2);
  return across * (1 + (waves - 1) * by_next_wave) + along * (1 + (bands - 1) * by_next_band) +
         bands * (waves - 1) * shared_row * by_next_wave;
}

/// Bytes that one product reads beyond each of its operands once. In a wave all tiles go through the inner dimension
/// in step, so that a panel of an operand is read once for all of them; across waves only what the cache still holds
/// is not read again. Bands are taken to run in the direction that reads less.
inline double reads_again(double m, double n, double k, double element, const Device& d) {
  const double by_rows = panels_read(m, n, rows_in_band, k, element, d);
  const double by_columns = panels_read(n, m, columns_in_band, k, element, d);
  return element * k * (std::min(by_rows, by_columns) - (m + n));
}

inline Bytes to_bytes(double b) {
  if (!(b < 9.2e18)) throw Overflow{};
  return Bytes(static_cast<std::int64_t>(b));
}

/// Copies of the data that lie between the kernels of a transform.
struct Intermediates {
  double bytes = 0;    ///< of all together; each is written once and read once
  double largest = 0;  ///< the bytes of one
};
inline Intermediates intermediates(const Fft& f) {
  Intermediates r;
  const std::vector<cufft::Pass> passes = cufft::passes(f);
  for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
    const auto each = static_cast<double>(passes[i].written.value());
    r.bytes += each;
    r.largest = std::max(r.largest, each);
  }
  return r;
}

inline Bytes again(const Matmul& o, const Device& d) {
  const double each =
      reads_again(static_cast<double>(o.m), static_cast<double>(o.n), static_cast<double>(o.k), bits(o.dtype) / 8.0, d);
  return to_bytes(each * static_cast<double>(o.batch));
}

}  // namespace traffic

/// The DRAM traffic of an op whose operands, together, are much larger than the cache: of smaller ones a part of the
/// result may stay there. Copies, kernels on rows, fused attention and decoding move what they must and no more;
/// products and transforms read and write again.
inline DramTraffic dram_traffic(const Op& op, const Device& d) {
  const Cost c = cost(op);
  DramTraffic r{c.read, c.written};
  if (const auto* o = std::get_if<Matmul>(&op)) r.read += traffic::again(*o, d);
  if (const auto* f = std::get_if<Fft>(&op)) {
    const traffic::Intermediates between = traffic::intermediates(*f);
    const double gone = between.bytes > 0 ? traffic::lost(between.largest, d.l2) : 0;
    const Bytes moved = traffic::to_bytes(between.bytes * gone);
    r.read += moved;
    r.written += moved;
  }
  return r;
}

/// The same of a product whose kernel is known: it tells which tiles are computed together, and which come next.
inline DramTraffic dram_traffic(const Matmul& o, const TileWalk& walk, const Device& d) {
  const Cost c = cost(Op(o));
  const traffic::Again again = traffic::read_and_written_again(static_cast<double>(o.m), static_cast<double>(o.n),
                                                               static_cast<double>(o.k), bits(o.dtype) / 8.0, walk, d);
  const auto batch = static_cast<double>(o.batch);
  return {c.read + traffic::to_bytes(again.read * batch), c.written + traffic::to_bytes(again.written * batch)};
}

}  // namespace vlmest
