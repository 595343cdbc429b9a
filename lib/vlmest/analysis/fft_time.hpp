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
/// Complex transforms up to these lengths keep up with the memory whatever their factors, since few threads hold their
/// points in registers; real ones of powers of two do so beyond another.
inline constexpr std::int64_t last_short_row = 128, last_short_column = 64, last_short_real = 512;
/// Of a multiprocessor, for its blocks (CUDA C++ Programming Guide, "Technical Specifications", compute
/// capability 9.0).
inline constexpr std::int64_t shared_memory = 227 * 1024;

/// What the prime factors of a length ask of each point: the sum of those from `first` to `last`.
constexpr std::int64_t prime_steps(std::int64_t n, std::int64_t first, std::int64_t last) {
  std::int64_t sum = 0;
  const auto add = [&](std::int64_t p) { sum += p >= first && p <= last ? p : 0; };
  for (std::int64_t p = 2; p <= n / p; ++p)
    for (; n % p == 0; n /= p) add(p);
  add(n);
  return sum;
}

/// How many primes are factors of a length, and the largest.
struct Factors {
  int primes = 0;
  std::int64_t largest = 1;
};
constexpr Factors factors(std::int64_t n) {
  Factors r;
  const auto take = [&](std::int64_t p) {
    if (n % p != 0) return;
    for (; n % p == 0; n /= p) r.largest = p;
    ++r.primes;
  };
  for (std::int64_t p = 2; p <= n / p; ++p) take(p);
  if (n > 1) take(n);
  return r;
}

/// Kernels of a transform of this length that has more than one: two, or three where three primes are factors and not
/// all of them small, or with a high power of five (seen: 516, 574, 830, 6344, 15717, 11250, 67500, 100000 take three;
/// 488, 781, 13843, 20250, 57600, 160000 two).
constexpr int kernels(std::int64_t n) {
  const Factors f = factors(n);
  const bool fives = n % 3125 == 0 || (n % 625 == 0 && n % 3 == 0);
  return (f.primes >= 3 && f.largest > 7) || fives ? 3 : 2;
}

/// The same of a convolution's length, of which some keep to one (seen: 25600 and 46656; not 15360, 20000, 34992).
inline constexpr std::int64_t last_one_kernel_convolution = 46656;
constexpr int convolution_kernels(std::int64_t n) {
  return n <= last_one_kernel_convolution && n % 64 == 0 && factors(n).primes <= 2 ? 1 : kernels(n);
}

/// Passes added up.
class Passes {
 public:
  Passes(const Fft& f, const Device& d, Operands operands) : f_(f), d_(d), operands_(operands) {}

  /// One kernel. `arithmetic` counts where it takes longer than the bytes.
  void pass(const MemoryEfficiency& e, Bytes read, Bytes written, Elements points, Seconds arithmetic = {}) {
    TiledTime t = memory_time(read, written, points, 1, d_, e, operands_);
    t.compute += arithmetic;
    const Seconds moving = tiled::overlapped(t.memory, t.compute, 2);
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
    const Elements points(checked_mul(n, transforms));
    const Bytes data = size_of(points, complex_of(f_.dtype));
    const cufft::ComplexPlan plan =
        strided ? cufft::strided_plan(n, transforms, f_.dtype) : cufft::complex_plan(n, transforms, f_.dtype);
    if (plan == cufft::ComplexPlan::bluestein) return convolution(n, transforms);
    if (plan == cufft::ComplexPlan::one_kernel) {
      const FftKernel& k = strided ? e.columns : e.rows;
      return pass(k, data, data, Elements{},
                  strided ? work(k, n, points) : std::max(work(k, n, points), blocks(n, transforms)));
    }
    // Each of several kernels takes a factor of the length, whose points are no neighbours.
    const int count = kernels(n);
    const FftKernel& k = strided ? e.scattered : e.rows;
    const Seconds share = (strided ? work(k, n, points) : primes(e.columns, n, points)) * (1.0 / count);
    for (int i = 0; i < count; ++i) pass(k, data, data, Elements{}, share);
  }

  /// Real rows, to or from their half spectra.
  void real(std::int64_t n, std::int64_t rows, bool forward, bool strided) {
    const FftEfficiency& e = d_.efficiency.fft;
    const Elements points(checked_mul(n, rows));
    const Bytes reals = size_of(points, f_.dtype);
    const Bytes half = size_of(Elements(checked_mul(half_spectrum(n), rows)), complex_of(f_.dtype));
    const Bytes from = forward ? reals : half, to = forward ? half : reals;
    if (cufft::has_real_kernel(n, f_.kind, f_.dtype, strided, rows))
      return pass(e.real, from, to, Elements{}, std::max(work(e.real, n, points), blocks(n / 2, rows)));
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
    for (int i = 0; i < 2 * convolution_kernels(length); ++i) pass(e.bluestein, padded, padded, Elements(points));
    pass(e.bluestein, padded, data, Elements(points));
  }

  const TiledTime& total() const { return total_; }

 private:
  /// The arithmetic on the points of transforms of length n in one kernel, and their ways through shared memory.
  Seconds work(const FftKernel& e, std::int64_t n, Elements points) const {
    const auto count = static_cast<double>(points.value());
    if (cufft::largest_prime_factor(n) > last_matrix) {
      const auto length = static_cast<double>(cufft::bluestein_length(n));
      return e.chirp * (count * length / static_cast<double>(n) * std::log2(length));
    }
    return radix(e, n) * count + primes(e, n, points);
  }
  Seconds radix(const FftKernel& e, std::int64_t n) const {
    const FftEfficiency& fft = d_.efficiency.fft;
    const bool complex = &e != &fft.real;
    if (is_power_of_two(n)) return complex || n <= last_short_real ? e.element : Seconds{};
    if (cufft::largest_prime_factor(n) > last_butterfly ||
        (complex && n <= (&e == &fft.rows ? last_short_row : last_short_column)))
      return {};
    return e.mixed_radix * (complex ? std::log2(static_cast<double>(n)) : 1.0);
  }
  Seconds primes(const FftKernel& e, std::int64_t n, Elements points) const {
    const bool held = &e != &d_.efficiency.fft.columns && n <= last_short_row;
    const auto count = static_cast<double>(points.value());
    return e.butterfly * (held ? 0 : count * static_cast<double>(prime_steps(n, 11, last_butterfly))) +
           e.matrix * (count * static_cast<double>(prime_steps(n, last_butterfly + 1, last_matrix)));
  }

  /// Long transforms, of which a multiprocessor holds few: rounds of blocks, and what a block takes. One that is larger
  /// than the memory of a multiprocessor takes several.
  Seconds blocks(std::int64_t n, std::int64_t transforms) const {
    const Bytes one = size_of(Elements(std::max<std::int64_t>(1, n)), complex_of(f_.dtype));
    const double fit = static_cast<double>(shared_memory) / static_cast<double>(one.value());
    const double together = d_.multiprocessors * (fit >= 1 ? std::floor(fit) : fit);
    return d_.efficiency.fft.block * (std::ceil(static_cast<double>(transforms) / together) * static_cast<double>(n));
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
  // Of one point each: a copy.
  if (p.total().time <= Seconds{}) p.pass(m.fused, input_bytes(f), output_bytes(f), on_input);
  if (f.scaled) p.pass(m.contiguous, output_bytes(f), output_bytes(f), c2r ? points(f) : spectrum(f));
  return p.total();
}

}  // namespace vlmest
