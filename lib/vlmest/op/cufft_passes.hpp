// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <vlmest/op/cufft_workspace.hpp>

/// Which kernels cuFFT runs for a transform: read off their numbers (cuFFT 12.0, sm_90) and the work areas of
/// cufft_workspace.hpp. 910 transforms launch as many, and so do 200 that were not looked at before. cuFFT documents
/// neither.
namespace vlmest::cufft {

/// One kernel of a transform: it reads all the data and writes it.
struct Pass {
  enum class Kind : std::uint8_t {
    rows,         ///< complex transforms of neighbouring points
    columns,      ///< of points that are no neighbours
    row_part,     ///< one factor of a length, of neighbouring points
    column_part,  ///< and of others
    convolution,  ///< one factor of the padded length of a Bluestein convolution
    grid,         ///< both axes of a small square
    real,         ///< real rows, to or from their half spectra
    repack,       ///< between real rows and complex ones
  };
  Kind kind = Kind::rows;
  Bytes read{}, written{};
  std::int64_t n = 1;           ///< what is transformed: a length, or its factor
  std::int64_t transforms = 1;  ///< of that length
  /// Columns whose points lie an odd number of values apart: what a block reads of a row begins inside a sector of the
  /// cache.
  bool misaligned = false;
};

/// A length that takes several kernels goes by the prime factor algorithm (I. J. Good, The interaction algorithm and
/// practical Fourier analysis, 1958): one kernel for each power of a prime, as far as it is no larger than this. (Seen:
/// 8 * 61, 109 * 127 take two, 4 * 3 * 43, 8 * 13 * 61 three, 32 * 5 * 7 * 11, 3 * 5 * 43 * 89 four; 1024 * 9, 64 *
/// 729, 512 * 125 take as many as primes, 2048 * 9, 16 * 2187 and 32 * 625 one more, 2 * 78125 two.)
constexpr std::int64_t largest_power(std::int64_t prime) { return prime == 5 ? 125 : 1024; }

/// The factors that a kernel each transforms, of a length that has several.
inline std::vector<std::int64_t> kernel_factors(std::int64_t n) {
  std::vector<std::int64_t> r;
  const auto split = [&](std::int64_t p, int exponent) {
    int most = 1;
    for (std::int64_t q = p; q <= largest_power(p) / p; q *= p) ++most;
    for (int count = (exponent + most - 1) / most; count > 0; --count) {  // as even as it goes
      const int e = (exponent + count - 1) / count;
      std::int64_t q = 1;
      for (int i = 0; i < e; ++i) q *= p;
      r.push_back(q);
      exponent -= e;
    }
  };
  for (std::int64_t p = 2; p <= n / p; ++p) {
    int exponent = 0;
    for (; n % p == 0; n /= p) ++exponent;
    if (exponent > 0) split(p, exponent);
  }
  if (n > 1) split(n, 1);
  return r;
}

/// Square grids of these sizes have a complex kernel that transforms both axes, where there are many (seen: not of 434
/// and fewer, but of 976 and more; 14, 37, 96, 112 and more have none). Few other squares were measured, so there may
/// be further ones.
inline constexpr std::array<std::int64_t, 9> square_kernels{16, 20, 24, 27, 32, 48, 56, 64, 128};
inline constexpr std::int64_t many_squares = 512;

/// Appends the kernels of a transform as they run: the last axis first, or last from a half spectrum.
class PassList {
 public:
  explicit PassList(const Fft& f) : f_(f) {
    const std::int64_t last = f.n[static_cast<std::size_t>(f.rank - 1)], rows = points(f).value() / last;
    if (f.kind == Fft::Kind::c2c && f.rank == 2 && f.n[0] == last && f.dtype != DType::fp64 &&
        f.batch >= many_squares && listed(square_kernels, last)) {
      add(Pass::Kind::grid, input_bytes(f), output_bytes(f), last, rows);
      return;
    }
    if (f.kind == Fft::Kind::c2c) complex(last, rows, f.strided && f.rank == 1);
    if (f.kind == Fft::Kind::r2c) real(last, rows);
    std::int64_t apart = f.kind == Fft::Kind::c2c ? last : half_spectrum(last);
    for (int i = f.rank - 2; i >= 0; --i) {
      const std::int64_t n = f.n[static_cast<std::size_t>(i)];
      complex(n, spectrum(f).value() / n, true, apart % 2 != 0);
      apart = checked_mul(apart, n);
    }
    if (f.kind == Fft::Kind::c2r) real(last, rows);
  }
  std::vector<Pass> take() { return std::move(list_); }

 private:
  void add(Pass::Kind kind, Bytes read, Bytes written, std::int64_t n, std::int64_t transforms,
           bool misaligned = false) {
    list_.push_back({kind, read, written, n, transforms, misaligned});
  }
  Bytes values(std::int64_t count) const { return size_of(Elements(count), complex_of(f_.dtype)); }

  /// Complex transforms of one axis.
  void complex(std::int64_t n, std::int64_t transforms, bool strided, bool misaligned = false) {
    if (n == 1) return;
    const std::int64_t count = checked_mul(n, transforms);
    const ComplexPlan plan = strided ? strided_plan(n, transforms, f_.dtype) : complex_plan(n, transforms, f_.dtype);
    if (plan == ComplexPlan::bluestein) return convolution(n, transforms);
    if (plan == ComplexPlan::one_kernel)
      return add(strided ? Pass::Kind::columns : Pass::Kind::rows, values(count), values(count), n, transforms,
                 misaligned);
    for (const std::int64_t q : kernel_factors(n))
      add(strided ? Pass::Kind::column_part : Pass::Kind::row_part, values(count), values(count), q, count / q,
          misaligned);
  }

  /// Bluestein: to a longer, smooth length and back. The first kernel multiplies by the chirp and pads, one in the
  /// middle multiplies the spectra, the last multiplies by the chirp again: none runs for that alone.
  void convolution(std::int64_t n, std::int64_t transforms) {
    const std::int64_t count = checked_mul(bluestein_length(n), transforms);
    const Bytes data = values(checked_mul(n, transforms)), padded = values(count);
    const std::vector<std::int64_t> q = kernel_factors(bluestein_length(n));
    const std::size_t all = 2 * q.size();
    for (std::size_t i = 0; i < all; ++i)
      add(Pass::Kind::convolution, i == 0 ? data : padded, i + 1 == all ? data : padded, q[i % q.size()],
          count / q[i % q.size()]);
  }

  /// Real rows, to or from their half spectra. Even ones without a kernel are complex ones of half the length, and
  /// their spectrum is untangled; odd ones go in pairs.
  void real(std::int64_t n, std::int64_t rows) {
    const bool forward = f_.kind == Fft::Kind::r2c, even = n % 2 == 0;
    const Bytes reals = size_of(Elements(checked_mul(n, rows)), f_.dtype);
    const Bytes half = values(checked_mul(half_spectrum(n), rows));
    const Bytes from = forward ? reals : half, to = forward ? half : reals;
    if (has_real_kernel(n, f_.kind, f_.dtype, f_.strided, rows)) return add(Pass::Kind::real, from, to, n, rows);
    const std::int64_t length = even ? n / 2 : n, transforms = even ? rows : rows / 2 + rows % 2;
    const Bytes packed = values(checked_mul(length, transforms));
    if (!even || !forward) add(Pass::Kind::repack, from, packed, n, rows);
    complex(length, transforms, false);
    if (!even || forward) add(Pass::Kind::repack, packed, to, n, rows);
  }

  const Fft& f_;
  std::vector<Pass> list_;
};

/// None where all axes have one point: a copy.
inline std::vector<Pass> passes(const Fft& f) { return PassList(f).take(); }

}  // namespace vlmest::cufft
