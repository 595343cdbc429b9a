// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include <vlmest/op/cufft_kernels.hpp>
#include <vlmest/op/fft.hpp>

namespace vlmest {

/// The work area of a cuFFT plan, as cufftXtMakePlanMany reports it for contiguous data.
struct FftWorkspace {
  Bytes bytes{};
  /// True where the sizes were measured (cuFFT 12.0, sm_90, fp32: see cufft_kernels.hpp): `bytes` is then what cuFFT
  /// reported at every batch tried (1 to 1024). False where the same rules are extended to a size, type or rank that
  /// was not measured: an expected value, not a bound. A kernel that the tables do not list makes the true work area
  /// smaller; a column length without an in-place kernel (75 is the one known), or another padding, makes it larger.
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
  for (std::int64_t m = least;; ++m) {
    std::int64_t r = m;
    for (const int p : {2, 3, 5})
      while (r % p == 0) r /= p;
    if (r == 1) return m;
  }
}

/// How a complex transform of one contiguous axis runs.
enum class ComplexPlan : std::uint8_t {
  one_kernel,   ///< in registers and shared memory, primes included (Bluestein inside the kernel): no work area
  two_kernels,  ///< through one intermediate copy of the data
  bluestein,    ///< two padded convolution buffers
};

constexpr ComplexPlan complex_plan(std::int64_t n) {
  const std::int64_t p = largest_prime_factor(n);
  if (p > 127) return n <= 4096 ? ComplexPlan::one_kernel : ComplexPlan::bluestein;
  if (p >= 37) return p == n || listed(one_kernel_composites, n) ? ComplexPlan::one_kernel : ComplexPlan::two_kernels;
  return n >= 32768 || listed(two_kernel_composites, n) ? ComplexPlan::two_kernels : ComplexPlan::one_kernel;
}

/// Work bytes of `batch` contiguous complex transforms of length n; z is the size of a complex value.
constexpr std::int64_t complex_work(std::int64_t n, std::int64_t batch, std::int64_t z) {
  switch (complex_plan(n)) {
    case ComplexPlan::one_kernel: return 0;
    case ComplexPlan::two_kernels: return checked_mul(checked_mul(n, batch), z);
    case ComplexPlan::bluestein: break;
  }
  return checked_mul(align(checked_mul(checked_mul(bluestein_length(n), batch), z)), 2);
}

constexpr bool has_real_kernel(std::int64_t n, Fft::Kind kind) {
  if (n % 2 != 0) return listed(odd_real_kernels, n);
  if (kind == Fft::Kind::c2r && (n == 92 || n == 232 || n == 248)) return false;
  return listed(even_real_kernels, n);
}

/// Complex work of a strided axis that is transformed in place in the output: a whole copy of the data unless a single
/// kernel covers it.
constexpr std::int64_t column_work(std::int64_t n, std::int64_t batch, std::int64_t z) {
  if (listed(out_of_place_columns, n)) return checked_mul(checked_mul(n, batch), z);
  return complex_work(n, batch, z);
}

constexpr bool length_measured(std::int64_t n) { return n < 1100 || listed(measured_lengths, n); }

}  // namespace cufft

/// Work area of the plan. Rules, z = bytes of a complex value, w = last size, rows = batch times the other sizes:
///   c2c  the largest need of any axis: 0 with a one-kernel length, else z * points, or two padded Bluestein buffers;
///        axes of one point drop out
///   real, length with a real kernel: 0
///   real, other even w: a complex transform of half the length goes through z * w/2 * rows; where that half transform
///        has two kernels itself, through z * (w/2 + 1) * rows
///   real, other odd w: rows of neighbouring batch items are paired into complex ones (the last alone where the batch
///        is odd), one copy of the pairs in, one out, the second aligned
/// and for two axes the larger of row and column need; in c2r the column need shares the second buffer of the pairs.
/// Source: fitted to measured sizes, all of which the rules and tables reproduce (tests/op/fft_test.cpp); cuFFT
/// documents none of this. Two axes with an even w outside the table of real kernels, and three axes, were not
/// measured.
constexpr FftWorkspace workspace(const Fft& f) {
  check(f);
  const std::int64_t z = bits(complex_of(f.dtype)) / 8;
  const std::int64_t w = f.n[static_cast<std::size_t>(f.rank - 1)];
  const bool fp32 = f.dtype == DType::fp32;
  FftWorkspace r;
  r.measured = fp32 && (f.rank == 1 ? cufft::length_measured(w)
                                    : f.rank == 2 && cufft::listed(cufft::measured_sides, f.n[0]) &&
                                          cufft::listed(cufft::measured_sides, w));

  int axes = 0;
  for (int i = 0; i < f.rank; ++i) axes += f.n[static_cast<std::size_t>(i)] > 1;
  const std::int64_t spectrum_points = spectrum(f).value();
  const bool complex = f.kind == Fft::Kind::c2c;
  const std::int64_t width = complex ? w : half_spectrum(w);
  std::int64_t columns = 0;
  for (int i = 0; i + 1 < f.rank; ++i) {
    const std::int64_t n = f.n[static_cast<std::size_t>(i)];
    if (n == 1) continue;
    const bool alone = complex && axes == 1;  // the other axes drop out: an ordinary contiguous transform
    columns = std::max(columns, alone ? cufft::complex_work(n, spectrum_points / n, z)
                                      : cufft::column_work(n, spectrum_points / n, z));
  }
  const std::int64_t rows = spectrum_points / width;
  if (complex) {
    r.bytes = Bytes(std::max(columns, cufft::complex_work(w, rows, z)));
  } else if (cufft::has_real_kernel(w, f.kind)) {
    r.bytes = Bytes(columns);
  } else if (w % 2 == 0) {
    const std::int64_t inner = cufft::complex_work(w / 2, rows, z);
    const bool bluestein = cufft::complex_plan(w / 2) == cufft::ComplexPlan::bluestein;
    const std::int64_t half = checked_mul(checked_mul(inner > 0 && !bluestein ? width : w / 2, rows), z);
    r.bytes = Bytes(std::max(columns, bluestein ? checked_add(half, inner) : half));
  } else {
    const std::int64_t pairs = checked_mul(rows / f.batch, f.batch / 2 + f.batch % 2);
    const std::int64_t data = checked_mul(checked_mul(w, pairs), z);
    if (cufft::complex_plan(w) == cufft::ComplexPlan::bluestein) {
      // The convolution buffers replace the aligned copy; here each ends past the next 1 KiB boundary.
      const std::int64_t buffer = checked_mul(checked_mul(cufft::bluestein_length(w), pairs), z);
      r.bytes = Bytes(std::max(columns, checked_add(data, 2 * cufft::align(checked_add(buffer, 1)))));
    } else {
      const std::int64_t second = f.kind == Fft::Kind::c2r ? std::max(data, columns) : data;
      r.bytes = Bytes(std::max(columns, checked_add(data, cufft::align(second))));
    }
  }
  return r;
}

/// The largest work area that the cuFFT manual allows for: eight complex values a point. For sizes with
/// `measured == false` the truth lies between 0 and this.
constexpr Bytes workspace_limit(const Fft& f) {
  check(f);
  return 8 * size_of(points(f), complex_of(f.dtype));
}

/// What plans cost outside the framework's allocator: twiddle tables and loaded kernels. Not in any peak that torch
/// reports. torch keeps up to 4096 plans per device, least recently used out first
/// (ATen/native/cuda/CuFFTPlanCache.h); one plan per distinct size, batch, strides and type. Users measured 0.4 to
/// 0.7 MB per plan (212 MB with 32 plans, 2.2 GB at 4096, the fixed part of the library included): a range, not a rule.
struct FftPlanCache {
  static constexpr std::int64_t capacity = 4096;
  Bytes low{};
  Bytes high{};
};

constexpr FftPlanCache plan_cache(std::int64_t distinct_plans) {
  const std::int64_t n = std::clamp<std::int64_t>(distinct_plans, 0, FftPlanCache::capacity);
  return {Bytes(n * 400'000), Bytes(n * 700'000)};
}

}  // namespace vlmest
