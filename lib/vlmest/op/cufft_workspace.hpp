// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <vlmest/op/cufft_kernels.hpp>
#include <vlmest/op/fft.hpp>

namespace vlmest {

/// The work area of a cuFFT plan, as cufftXtMakePlanMany reports it for contiguous data.
struct FftWorkspace {
  Bytes bytes{};
  /// True where every axis has a measured length (cuFFT 12.0, sm_90, fp32: see cufft_kernels.hpp; of primes, a sample):
  /// `bytes` is then what cuFFT reported in each of 25,000 plans. False where the same rules are extended to a length
  /// or type that was not measured: an expected value, not a bound. A kernel that the tables do not list makes the true
  /// work area smaller, one that does not exist (or another padding) larger.
  bool measured = false;
};

// Names such as "one kernel" or "pair" below are our reading of the sizes; cuFFT's sources are closed.
namespace cufft {

/// Buffers inside a work area start at multiples of 1 KiB.
constexpr std::int64_t align(std::int64_t bytes) { return checked_add(bytes, 1023) / 1024 * 1024; }

constexpr std::int64_t largest_prime_factor(std::int64_t n) {
  std::int64_t largest = 1;
  for (std::int64_t p = 2; p <= n / p; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return n > 1 ? n : largest;
}

/// Bluestein's chirp-z convolution of length n runs at the next length 2^a 3^b 5^c that is at least 2n - 1
/// (n = 4097: 8640, the only such length measured).
constexpr std::int64_t bluestein_length(std::int64_t n) {
  const std::int64_t least = checked_sub(checked_mul(n, 2), 1);
  std::int64_t best = checked_mul(least, 2);  // a power of two lies below it
  for (std::int64_t five = 1; five < best; five = checked_mul(five, 5))
    for (std::int64_t odd = five; odd < best; odd = checked_mul(odd, 3)) {
      std::int64_t m = odd;
      while (m < least) m *= 2;
      best = std::min(best, m);
    }
  return best;
}

/// How a complex transform of one axis runs.
enum class ComplexPlan : std::uint8_t {
  one_kernel,   ///< in registers and shared memory, primes included (Bluestein inside the kernel): no work area
  two_kernels,  ///< through one intermediate copy of the data
  bluestein,    ///< two padded convolution buffers
};

/// Transforms from which on 2^15 points get one kernel of their own (measured: not at 100, but at 384 and more).
inline constexpr std::int64_t many_transforms = 128;
inline constexpr std::int64_t long_power = 32768;
/// The longest half-precision transform (all are powers of two) in one kernel.
inline constexpr std::int64_t last_half_precision = 8192;

/// Of a contiguous axis.
constexpr ComplexPlan complex_plan(std::int64_t n, std::int64_t transforms, DType type) {
  if (type == DType::fp16) return n <= last_half_precision ? ComplexPlan::one_kernel : ComplexPlan::two_kernels;
  if (type == DType::fp64 && listed(two_kernel_fp64, n)) return ComplexPlan::two_kernels;
  const std::int64_t p = largest_prime_factor(n);
  if (p > 127) return n <= 4096 ? ComplexPlan::one_kernel : ComplexPlan::bluestein;
  bool one = false;
  if (p >= 37)
    one = p == n || listed(one_kernel_composites, n);
  else if (n <= (p <= 7 ? last_smooth_length : 4096))
    one = !listed(two_kernel_composites, n);
  else
    one = listed(long_one_kernel_composites, n) || (n == long_power && transforms >= many_transforms);
  return one ? ComplexPlan::one_kernel : ComplexPlan::two_kernels;
}

/// Of an axis whose points do not lie next to each other.
constexpr ComplexPlan strided_plan(std::int64_t n, std::int64_t transforms, DType type) {
  const ComplexPlan plan = complex_plan(n, transforms, type);
  const std::int64_t p = largest_prime_factor(n);
  const bool unlisted = n > last_strided && p > 7 && p <= 127 && p != n;  // none of those measured has one kernel
  const bool never = n > 4096 || unlisted || listed(two_kernel_strided, n);
  return plan == ComplexPlan::one_kernel && never ? ComplexPlan::two_kernels : plan;
}

/// Work bytes of `transforms` complex transforms of length n; z is the size of a complex value.
constexpr std::int64_t complex_work(ComplexPlan plan, std::int64_t n, std::int64_t transforms, std::int64_t z) {
  switch (plan) {
    case ComplexPlan::one_kernel: return 0;
    case ComplexPlan::two_kernels: return checked_mul(checked_mul(n, transforms), z);
    case ComplexPlan::bluestein: break;
  }
  return checked_mul(align(checked_mul(checked_mul(bluestein_length(n), transforms), z)), 2);
}

/// The most batch items that a real kernel of a long power takes.
inline constexpr std::int64_t most_half_transforms = 65535;

/// Where the real points lie next to each other, all listed lengths have a real kernel; strided ones only up to 1024.
constexpr bool has_real_kernel(std::int64_t n, Fft::Kind kind, DType type, bool strided, std::int64_t transforms) {
  if (type == DType::fp16) return n <= last_half_precision;
  if (type == DType::fp64 && listed(no_real_kernel_fp64, n)) return false;
  const bool c2r = kind == Fft::Kind::c2r;
  if (strided && (n > 1024 || n == 10 || n == 12 || n == 14 || n == 22 || n == 26 || (c2r && n == 6))) return false;
  if (n % 2 != 0) return listed(odd_real_kernels, n);
  if (c2r && (n == 92 || n == 232 || n == 248)) return false;
  return listed(even_real_kernels, n) || ((n == long_power || n == 2 * long_power) && transforms >= many_transforms &&
                                          transforms <= most_half_transforms);
}

constexpr bool length_measured(std::int64_t n) {
  const std::int64_t p = largest_prime_factor(n);
  return n <= last_length || (n <= last_smooth_length && p <= 7) || p == n;
}
constexpr bool strided_measured(std::int64_t n) {
  const std::int64_t p = largest_prime_factor(n);
  return n <= last_strided || (n <= last_smooth_strided && p <= 7) || p == n;
}

/// Need of the other axes than the last.
struct Columns {
  std::int64_t work = 0;
  bool bluestein = false;
};

/// Real rows of length w without a kernel of their own.
constexpr std::int64_t real_work(const Fft& f, std::int64_t w, std::int64_t rows, Columns columns, std::int64_t z) {
  const std::int64_t pairs = checked_mul(rows / f.batch, f.batch / 2 + f.batch % 2);
  const bool c2r = f.kind == Fft::Kind::c2r;
  std::int64_t first = 0, second = 0;  // copies of the data
  if (w % 2 == 0) {
    const ComplexPlan half = complex_plan(w / 2, rows, f.dtype);
    first = checked_mul(checked_mul(w / 2, rows), z);
    second = half == ComplexPlan::two_kernels ? checked_mul(checked_mul(half_spectrum(w), rows), z) : first;
    if (half == ComplexPlan::bluestein) {
      const std::int64_t buffer = checked_mul(checked_mul(checked_add(bluestein_length(w / 2), 1), rows), z);
      return std::max(columns.work, checked_add(first, 2 * align(buffer)));
    }
    // Items are told apart as lengths are: seen with one copy 3949 = 11 * 359 and 91908 = 4 * 27 * 23 * 37, with two
    // 4509 = 27 * 167 and 65537.
    const auto whole = [](std::int64_t count) { return count <= 4096 || largest_prime_factor(count) <= 127; };
    const bool once = whole(f.batch) && whole(w);
    if (once) return c2r && columns.bluestein ? checked_add(first, columns.work) : std::max(columns.work, second);
  } else {
    const ComplexPlan plan = complex_plan(w, rows, f.dtype);
    first = checked_mul(checked_mul(w, pairs), z);
    if (plan == ComplexPlan::bluestein) {  // the convolution buffers replace the second copy
      const std::int64_t buffer = checked_mul(checked_mul(checked_add(bluestein_length(w), 1), pairs), z);
      return std::max(columns.work, checked_add(first, 2 * align(buffer)));
    }
    second = plan == ComplexPlan::two_kernels ? checked_add(first, checked_mul(pairs, z)) : first;
    if (c2r) second = std::max(second, columns.work);
  }
  return std::max(columns.work, checked_add(first, align(second)));
}

}  // namespace cufft

/// Work area of the plan; `strided` says that neighbouring points of an axis are not neighbours in the input (the
/// channels-last grid of one image). Rules, z = bytes of a complex value, w = last size, rows = batch times the other
/// sizes:
///   c2c  the largest need of any axis: 0 with a one-kernel length, else z * points, or two padded Bluestein buffers;
///        axes of one point drop out
///   real, length with a real kernel: 0
///   real, other even w: a complex transform of half the length goes through z * w/2 * rows; where that half transform
///        has two kernels itself, through z * (w/2 + 1) * rows; where w or the batch is above 4096 and has a prime
///        factor above 127, through a further copy of z * w/2 * rows
///   real, other odd w: rows of neighbouring batch items are paired into complex ones (the last alone where the batch
///        is odd), one copy of the pairs in, one out, the second aligned
/// and for two axes and three the larger of row and column need; in c2r the column need shares the second buffer of the
/// pairs, and Bluestein's comes on top of the first copy. Source: fitted to measured sizes of one axis, all of which
/// the rules and tables reproduce, and checked on grids that were not looked at (tests/op/fft_workspace_test.cpp);
/// cuFFT documents none of this.
constexpr FftWorkspace workspace(const Fft& f, bool strided = false) {
  check(f);
  const std::int64_t z = bits(complex_of(f.dtype)) / 8;
  const std::int64_t w = f.n[static_cast<std::size_t>(f.rank - 1)];
  FftWorkspace r;
  const bool complex = f.kind == Fft::Kind::c2c;
  r.measured = f.dtype == DType::fp32 && (complex && strided ? cufft::strided_measured(w) : cufft::length_measured(w));

  const std::int64_t spectrum_points = spectrum(f).value();
  const std::int64_t width = complex ? w : half_spectrum(w);
  int last = f.rank - 1;  // a c2c drops axes of one point, and its last remaining one is the contiguous one
  while (complex && last > 0 && f.n[static_cast<std::size_t>(last)] == 1) --last;
  int axes = 0;
  for (int i = 0; i < f.rank; ++i) axes += f.n[static_cast<std::size_t>(i)] > 1;
  cufft::Columns columns;
  for (int i = 0; i + 1 < f.rank; ++i) {
    const std::int64_t n = f.n[static_cast<std::size_t>(i)];
    if (n == 1) continue;
    const bool row = i == last && !(strided && axes == 1);
    r.measured = r.measured && (row ? cufft::length_measured(n) : cufft::strided_measured(n));
    const std::int64_t transforms = spectrum_points / n;
    const auto plan = row ? cufft::complex_plan(n, transforms, f.dtype) : cufft::strided_plan(n, transforms, f.dtype);
    columns.work = std::max(columns.work, cufft::complex_work(plan, n, transforms, z));
    columns.bluestein = columns.bluestein || plan == cufft::ComplexPlan::bluestein;
  }
  const std::int64_t rows = spectrum_points / width;
  if (complex) {
    const auto plan =
        strided && axes == 1 ? cufft::strided_plan(w, rows, f.dtype) : cufft::complex_plan(w, rows, f.dtype);
    r.bytes = Bytes(std::max(columns.work, cufft::complex_work(plan, w, rows, z)));
  } else if (cufft::has_real_kernel(w, f.kind, f.dtype, strided, rows)) {
    r.bytes = Bytes(columns.work);
  } else {
    r.bytes = Bytes(cufft::real_work(f, w, rows, columns, z));
  }
  return r;
}

/// The largest work area that the cuFFT manual allows for: eight complex values a point. For sizes with
/// `measured == false` the truth lies between 0 and this.
constexpr Bytes workspace_limit(const Fft& f) {
  check(f);
  return 8 * size_of(points(f), complex_of(f.dtype));
}

}  // namespace vlmest
