// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/analysis/memory_time.hpp>
#include <vlmest/op/fft_cost.hpp>

/// The time of cuFFT's transforms: passes over the data, each a kernel that reads all points and writes them. Which
/// passes run follows from the lengths, as the work areas do (cufft_workspace.hpp).
namespace vlmest::fft_time {

/// Primes up to this have butterflies in registers; cuFFT multiplies by the matrix of longer ones up to 127, and beyond
/// convolves with a chirp (Bluestein).
inline constexpr std::int64_t last_butterfly = 31, last_matrix = 127;
/// A longer one of the transforms in one kernel leaves room for one block a multiprocessor in shared memory.
inline constexpr std::int64_t last_shared = 8192;

/// The sum of the prime factors whose matrices are multiplied: operations a point of all of them.
constexpr std::int64_t matrix_steps(std::int64_t n) {
  std::int64_t sum = 0;
  for (std::int64_t p = 2; p <= n / p; ++p)
    for (; n % p == 0; n /= p) sum += p > last_butterfly ? p : 0;
  return n > last_butterfly && n <= last_matrix ? sum + n : sum;
}

/// Kernels of a transform of this length that has more than one: two, or three for high powers of five (seen: 11250,
/// 45000, 67500, 100000, 112500, 156250 take three, 20250, 57600, 65536, 160000 two).
constexpr int kernels(std::int64_t n) { return n % 3125 == 0 || (n % 625 == 0 && n % 3 == 0) ? 3 : 2; }

/// Passes added up.
class Passes {
 public:
  Passes(const Fft& f, const Device& d, Operands operands) : f_(f), d_(d), operands_(operands) {}

  /// One kernel. `arithmetic` counts where it takes longer than the bytes.
  void pass(const MemoryEfficiency& e, Bytes read, Bytes written, Elements points, Seconds arithmetic = {}) {
    TiledTime t = memory_time(read, written, points, 1, d_, e, operands_);
    t.compute += arithmetic;
    const Seconds moving = tiled::overlapped(t.memory, t.compute);
    total_.start += t.start;
    total_.memory += t.memory;
    total_.compute += t.compute;
    total_.time += t.start + moving;
    operands_ = Operands::from_cache;  // what the next one reads was just written
  }

  /// Complex transforms of one axis, in place in the intermediate data.
  void complex(std::int64_t n, std::int64_t transforms, bool strided) {
    if (n == 1) return;
    const FftEfficiency& e = d_.efficiency.fft;
    const std::int64_t points = checked_mul(n, transforms);
    const Bytes data = size_of(Elements(points), complex_of(f_.dtype));
    const cufft::ComplexPlan plan = strided ? cufft::strided_plan(n, transforms, f_.dtype)  //
                                            : cufft::complex_plan(n, transforms, f_.dtype);
    const MemoryEfficiency& one = strided ? e.columns : n > last_shared ? e.large : e.rows;
    const bool chirp = cufft::largest_prime_factor(n) > last_matrix;
    if (plan == cufft::ComplexPlan::bluestein) return convolution(n, transforms);
    const int count = plan == cufft::ComplexPlan::one_kernel ? 1 : kernels(n);
    Seconds arithmetic = e.matrix * (static_cast<double>(matrix_steps(n)) * static_cast<double>(points));
    if (chirp) arithmetic = e.chirp * padded(n, transforms);
    for (int i = 0; i < count; ++i) pass(one, data, data, Elements(points), i == 0 ? arithmetic : Seconds{});
  }

  /// Real rows, to or from their half spectra.
  void real(std::int64_t n, std::int64_t rows, bool forward, bool strided) {
    const FftEfficiency& e = d_.efficiency.fft;
    const Elements points(checked_mul(n, rows));
    const Bytes reals = size_of(points, f_.dtype);
    const Bytes half = size_of(Elements(checked_mul(half_spectrum(n), rows)), complex_of(f_.dtype));
    const Bytes from = forward ? reals : half, to = forward ? half : reals;
    if (cufft::has_real_kernel(n, f_.kind, f_.dtype, strided, rows)) {
      const Seconds arithmetic =
          e.matrix * (static_cast<double>(matrix_steps(n)) * static_cast<double>(points.value()) / 2);
      return pass(e.real, from, to, points, arithmetic);
    }
    // Even rows are complex ones of half the length, and their spectrum is untangled. Odd ones go in pairs.
    const bool even = n % 2 == 0;
    const std::int64_t length = even ? n / 2 : n, transforms = even ? rows : rows / 2 + rows % 2;
    if (!even || !forward) pass(e.repack, from, even ? half : reals, points);
    complex(length, transforms, false);
    if (!even || forward) pass(e.repack, reals, to, points);
  }

  /// Bluestein: multiplied by a chirp into a longer, smooth length, convolved there, multiplied again. Its spectrum is
  /// multiplied by that of the chirp on the way.
  void convolution(std::int64_t n, std::int64_t transforms) {
    const FftEfficiency& e = d_.efficiency.fft;
    const std::int64_t length = cufft::bluestein_length(n), points = checked_mul(length, transforms);
    const Bytes data = size_of(Elements(checked_mul(n, transforms)), complex_of(f_.dtype));
    const Bytes padded = size_of(Elements(points), complex_of(f_.dtype));
    pass(e.bluestein, data, padded, Elements(points));
    for (int i = 0; i < 2 * kernels(length); ++i) pass(e.bluestein, padded, padded, Elements(points));
    pass(e.bluestein, padded, data, Elements(points));
  }

  const TiledTime& total() const { return total_; }

 private:
  /// Butterflies of the convolution inside one kernel.
  static double padded(std::int64_t n, std::int64_t transforms) {
    const std::int64_t length = cufft::bluestein_length(n);
    return static_cast<double>(checked_mul(length, transforms)) * std::log2(static_cast<double>(length));
  }

  const Fft& f_;
  const Device& d_;
  Operands operands_;
  TiledTime total_;
};

}  // namespace vlmest::fft_time

namespace vlmest {

/// How long a transform takes with its copies and scaling: the last axis first, or last from a half spectrum.
inline TiledTime transform_time(const Fft& f, const Device& d, Operands operands) {
  check(f);
  const MemoryEfficiencies& m = d.efficiency.memory;
  const bool c2r = f.kind == Fft::Kind::c2r;
  fft_time::Passes p(f, d, operands);
  const Elements on_input = f.kind == Fft::Kind::r2c ? points(f) : spectrum(f);
  if (f.copied) p.pass(m.strided, input_bytes(f), input_bytes(f), on_input);
  if (c2r) p.pass(m.fused, input_bytes(f), input_bytes(f), on_input);  // cuFFT overwrites its input

  const std::int64_t last = f.n[static_cast<std::size_t>(f.rank - 1)], rows = points(f).value() / last;
  const std::int64_t row = f.kind == Fft::Kind::c2c ? last : half_spectrum(last);
  const auto along_rows = [&] {
    f.kind == Fft::Kind::c2c ? p.complex(last, rows, f.strided && f.rank == 1) : p.real(last, rows, !c2r, f.strided);
  };
  const auto along_columns = [&] {
    for (int i = f.rank - 2; i >= 0; --i) {
      const std::int64_t n = f.n[static_cast<std::size_t>(i)];
      p.complex(n, checked_mul(rows / n, row), true);
    }
  };
  if (!c2r) along_rows();
  along_columns();
  if (c2r) along_rows();
  if (f.scaled) p.pass(m.contiguous, output_bytes(f), output_bytes(f), c2r ? points(f) : spectrum(f));
  return p.total();
}

}  // namespace vlmest
