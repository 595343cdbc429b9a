// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <vlmest/analysis/memory_time.hpp>
#include <vlmest/library/gpu.hpp>
#include <vlmest/op/cufft_passes.hpp>
#include <vlmest/op/fft_cost.hpp>

/// The time of cuFFT's transforms: passes over the data, each a kernel that reads all points and writes them
/// (cufft_passes.hpp).
namespace vlmest::fft_time {

/// Primes up to this have butterflies in registers; cuFFT multiplies by the matrix of longer ones up to 127, and beyond
/// convolves with a chirp (Bluestein).
inline constexpr std::int64_t last_butterfly = 31, last_matrix = 127;
/// Of rows up to this length few threads hold the points, in registers, so that butterflies of primes cost nothing.
inline constexpr std::int64_t last_short_row = 128;
/// Real powers of two beyond this keep up with the memory.
inline constexpr std::int64_t last_short_real = 512;

/// What the prime factors of a length ask of each point: the sum of those from `first` to `last`.
constexpr std::int64_t prime_steps(std::int64_t n, std::int64_t first, std::int64_t last) {
  std::int64_t sum = 0;
  const auto add = [&](std::int64_t p) { sum += p >= first && p <= last ? p : 0; };
  for (std::int64_t p = 2; p <= n / p; ++p)
    for (; n % p == 0; n /= p) add(p);
  add(n);
  return sum;
}

/// How many primes are factors of a length.
constexpr int primes(std::int64_t n) {
  int count = 0;
  for (std::int64_t p = 2; p <= n / p; ++p) {
    if (n % p != 0) continue;
    ++count;
    while (n % p == 0) n /= p;
  }
  return count + (n > 1 ? 1 : 0);
}

constexpr const MemoryEfficiency& efficiency(const FftEfficiency& e, cufft::Pass::Kind kind) {
  using Kind = cufft::Pass::Kind;
  switch (kind) {
    case Kind::columns: return e.columns;
    case Kind::row_part: return e.row_parts;
    case Kind::column_part: return e.column_parts;
    case Kind::convolution: return e.convolution;
    case Kind::grid: return e.grid;
    case Kind::real: return e.real;
    case Kind::repack: return e.repack;
    case Kind::rows: break;
  }
  return e.rows;
}

/// The matrices of long primes, or the convolution of one that has none, of a point.
inline Seconds long_primes(const FftKernel& e, std::int64_t n) {
  if (cufft::largest_prime_factor(n) <= last_matrix)
    return e.matrix * static_cast<double>(prime_steps(n, last_butterfly + 1, last_matrix));
  const auto length = static_cast<double>(cufft::bluestein_length(n));
  return e.chirp * (length / static_cast<double>(n) * std::log2(length));
}
inline Seconds butterflies(const FftKernel& e, std::int64_t n) {
  return e.butterfly * static_cast<double>(prime_steps(n, 11, last_butterfly));
}

/// For each bit of a length that is no power of two; twice that from three primes on.
inline Seconds mixed_radix(const FftKernel& e, std::int64_t n) {
  return e.mixed_radix * (std::log2(static_cast<double>(n)) * (primes(n) >= 3 ? 2 : 1));
}

/// Rows of one or two primes keep up with the memory, but for short ones that are no powers of two.
inline Seconds row_point(const FftKernel& e, std::int64_t n) {
  if (is_power_of_two(n)) return {};
  if (cufft::largest_prime_factor(n) > last_matrix) return long_primes(e, n);
  const bool is_short = n <= last_short_row;
  return (is_short || primes(n) >= 3 ? mixed_radix(e, n) : Seconds{}) + (is_short ? Seconds{} : butterflies(e, n)) +
         long_primes(e, n);
}
inline Seconds real_point(const FftKernel& e, std::int64_t n) {
  if (is_power_of_two(n)) return n <= last_short_real ? e.element : Seconds{};
  return mixed_radix(e, n) + (n <= last_short_row ? Seconds{} : butterflies(e, n)) + long_primes(e, n);
}
/// Columns: the longer, the fewer of them a block holds, and the shorter the pieces of rows that it reads. Of primes,
/// only those that are the whole length have been seen to cost more.
inline Seconds column_point(const FftKernel& e, std::int64_t n, bool misaligned) {
  if (cufft::largest_prime_factor(n) > last_matrix) return long_primes(e, n);
  return (is_power_of_two(n) ? e.element : mixed_radix(e, n)) +
         (misaligned ? e.misaligned * std::log2(static_cast<double>(n)) : Seconds{}) +
         (primes(n) == 1 && n <= last_butterfly ? butterflies(e, n) : Seconds{}) + long_primes(e, n);
}

/// What one pass takes beyond the bytes that it moves, a point.
inline Seconds point(const FftEfficiency& e, const cufft::Pass& p) {
  using Kind = cufft::Pass::Kind;
  switch (p.kind) {
    case Kind::rows: return row_point(e.rows, p.n);
    case Kind::real: return real_point(e.real, p.n);
    case Kind::columns: return column_point(e.columns, p.n, p.misaligned);
    case Kind::row_part: return butterflies(e.row_parts, p.n) + long_primes(e.row_parts, p.n);
    case Kind::column_part: return butterflies(e.column_parts, p.n) + long_primes(e.column_parts, p.n);
    case Kind::convolution: return e.convolution.element;
    case Kind::grid:
    case Kind::repack: break;
  }
  return {};
}

/// Long rows, of which a multiprocessor holds few: rounds of blocks, and what a block takes. One that is larger than
/// the memory of a multiprocessor takes several.
inline Seconds blocks(std::int64_t n, std::int64_t transforms, DType type, const Device& d) {
  const Bytes one = size_of(Elements(std::max<std::int64_t>(1, n)), complex_of(type));
  const double fit = static_cast<double>(block_shared_memory(d.sm)) / static_cast<double>(one.value());
  const double together = d.multiprocessors * (fit >= 1 ? std::floor(fit) : fit);
  return d.efficiency.fft.block * (std::ceil(static_cast<double>(transforms) / together) * static_cast<double>(n));
}

/// Kernels one after the other.
class Sum {
 public:
  Sum(const Device& d, Operands operands) : d_(d), operands_(operands) {}

  /// `arithmetic` counts where it takes longer than the bytes.
  void add(const MemoryEfficiency& e, Bytes read, Bytes written, Elements walked, Seconds arithmetic = {}) {
    OpTime t = memory_time(read, written, walked, 1, d_, e, operands_);
    t.compute += arithmetic;
    total_.start += t.start;
    total_.memory += t.memory;
    total_.compute += t.compute;
    total_.time += t.start + tiled::overlapped(t.memory, t.compute, 2);
    operands_ = Operands::from_cache;  // what the next one reads was just written
  }
  void add(const cufft::Pass& p, DType type) {
    using Kind = cufft::Pass::Kind;
    const FftEfficiency& e = d_.efficiency.fft;
    Seconds arithmetic = point(e, p) * static_cast<double>(checked_mul(p.n, p.transforms));
    if (p.kind == Kind::rows || p.kind == Kind::real)
      arithmetic = std::max(arithmetic, blocks(p.kind == Kind::real ? p.n / 2 : p.n, p.transforms, type, d_));
    add(efficiency(e, p.kind), p.read, p.written, Elements{}, arithmetic);
  }
  const OpTime& total() const { return total_; }

 private:
  const Device& d_;
  Operands operands_;
  OpTime total_;
};

}  // namespace vlmest::fft_time

namespace vlmest {

/// How long a transform takes that runs by these passes, with its copies and scaling.
inline OpTime transform_time(const Fft& f, const std::vector<cufft::Pass>& passes, const Device& d, Operands operands) {
  const MemoryEfficiencies& m = d.efficiency.memory;
  const bool c2r = f.kind == Fft::Kind::c2r;
  const Elements on_input = f.kind == Fft::Kind::r2c ? points(f) : spectrum(f);
  fft_time::Sum sum(d, operands);
  if (f.copied) sum.add(m.strided, input_bytes(f), input_bytes(f), on_input);
  if (c2r) sum.add(d.efficiency.fft.copy, input_bytes(f), input_bytes(f), Elements{});  // cuFFT overwrites its input
  if (passes.empty()) sum.add(m.fused, input_bytes(f), output_bytes(f), on_input);      // of one point each: a copy
  for (const cufft::Pass& p : passes) sum.add(p, f.dtype);
  if (f.scaled) sum.add(m.contiguous, output_bytes(f), output_bytes(f), c2r ? points(f) : spectrum(f));
  return sum.total();
}
inline OpTime transform_time(const Fft& f, const Device& d, Operands operands) {
  check(f);
  return transform_time(f, cufft::passes(f), d, operands);
}

}  // namespace vlmest
