// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <vlmest/tensor/dtype.hpp>

namespace vlmest {

/// A batched discrete Fourier transform over the last `rank` of (at most three) signal axes: what one cuFFT plan runs.
/// `n` are the logical (real-side) sizes, outermost first, in n[0] … n[rank - 1]; the axis that a real transform halves
/// is n[rank - 1].
struct Fft {
  enum class Kind : std::uint8_t { c2c, r2c, c2r };
  Kind kind = Kind::c2c;
  std::int64_t batch = 1;  ///< independent transforms: for a [B, C, H, W] grid B * C
  std::array<std::int64_t, 3> n{1, 1, 1};
  int rank = 2;
  bool inverse = false;       ///< direction of a c2c; r2c is forward, c2r is inverse
  DType dtype = DType::fp32;  ///< of the real and of the imaginary part: fp16, fp32 or fp64
  bool strided = false;       ///< neighbouring points of an axis are not neighbours in the input
  bool copied = false;        ///< the input is first made contiguous, because no plan can describe its strides
  bool scaled = false;        ///< the result is multiplied by the factor of its norm, in place

  constexpr bool operator==(const Fft&) const = default;
};

constexpr bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/// No GPU holds a longer axis.
inline constexpr std::int64_t largest_transform = std::int64_t{1} << 31;

/// Throws Error for what torch.fft refuses on CUDA (torch 2.11): bfloat16, and half-precision sizes other than powers
/// of two (ATen/native/cuda/CuFFTPlanCache.h).
constexpr void check(const Fft& f) {
  if (f.rank < 1 || f.rank > 3) throw Error("fft", "a plan has one to three axes", "split the transform");
  if (f.batch < 1) throw Error("fft", "the batch is not positive");
  for (int i = 0; i < f.rank; ++i)
    if (const auto n = f.n[static_cast<std::size_t>(i)]; n < 1 || n > largest_transform)
      throw Error("fft", "a transformed size of " + std::to_string(n), "give 1 to 2147483648 points");
  if (f.dtype == DType::bf16) throw Error("fft", "there is no bf16 transform", "upcast the input to fp32 first");
  if (f.dtype != DType::fp16 && f.dtype != DType::fp32 && f.dtype != DType::fp64)
    throw Error("fft", "no transform for this type", "use fp16, fp32 or fp64");
  if (f.dtype == DType::fp16)
    for (int i = 0; i < f.rank; ++i)
      if (!is_power_of_two(f.n[static_cast<std::size_t>(i)]))
        throw Error("fft", "a half-precision transform needs powers of two", "upcast the input to fp32 first");
}

/// Complex values that a real axis of n points has in the frequency domain; the rest follows by symmetry.
constexpr std::int64_t half_spectrum(std::int64_t n) { return n / 2 + 1; }

/// Points of the whole batch on the real (full) side.
constexpr Elements points(const Fft& f) {
  std::int64_t p = f.batch;
  for (int i = 0; i < f.rank; ++i) p = checked_mul(p, f.n[static_cast<std::size_t>(i)]);
  return Elements(p);
}

/// Complex values of the whole batch on the frequency side: the half spectrum of a real transform, else all points.
constexpr Elements spectrum(const Fft& f) {
  if (f.kind == Fft::Kind::c2c) return points(f);
  const std::int64_t last = f.n[static_cast<std::size_t>(f.rank - 1)];
  return Elements(checked_mul(points(f).value() / last, half_spectrum(last)));
}

/// The complex type made of two parts of type t.
constexpr DType complex_of(DType t) {
  return t == DType::fp64 ? DType::complex128 : t == DType::fp16 ? DType::complex32 : DType::complex64;
}

/// Of the tensor that goes in: real points for r2c, the spectrum otherwise.
constexpr Bytes input_bytes(const Fft& f) {
  check(f);
  return f.kind == Fft::Kind::r2c ? size_of(points(f), f.dtype) : size_of(spectrum(f), complex_of(f.dtype));
}

/// Of the tensor that comes out: real points for c2r, the spectrum otherwise.
constexpr Bytes output_bytes(const Fft& f) {
  check(f);
  return f.kind == Fft::Kind::c2r ? size_of(points(f), f.dtype) : size_of(spectrum(f), complex_of(f.dtype));
}

/// log2 of a positive integer, usable at compile time; exact for powers of two. The mantissa m in [1, 2) goes through
/// ln m = 2 artanh((m - 1) / (m + 1)), whose series gains almost a digit per term.
constexpr double binary_log(std::int64_t n) {
  int exponent = 0;
  double m = static_cast<double>(n);
  for (; m >= 2; m /= 2) ++exponent;
  const double z = (m - 1) / (m + 1);
  double power = z;
  double sum = 0;
  for (int k = 1; k < 40; k += 2, power *= z * z) sum += power / k;
  return exponent + 2 * sum / 0.69314718055994530942;
}

/// 5 N log2 N for a complex transform of N points, half of it for a real one: the convention of FFTW and cuFFT
/// (fftw.org/speed, cuFFT's own benchmarks); over several axes N is the product of their sizes, so the logarithms add.
/// Rounded to the nearest integer once, for the whole batch.
constexpr Flops flops(const Fft& f) {
  check(f);
  double sum_of_logs = 0;
  for (int i = 0; i < f.rank; ++i) sum_of_logs += binary_log(f.n[static_cast<std::size_t>(i)]);
  const double per_point = (f.kind == Fft::Kind::c2c ? 5.0 : 2.5) * sum_of_logs;
  const double total = static_cast<double>(points(f).value()) * per_point + 0.5;
  if (total >= 9.2e18) throw Overflow{};
  return Flops(static_cast<std::int64_t>(total));
}

}  // namespace vlmest
