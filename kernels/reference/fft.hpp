// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <numbers>
#include <span>
#include <vector>

#include <vlmest/op/fft.hpp>

namespace vlmest::kernels::reference {

using Complex = std::complex<double>;

/// exp(sign 2 pi i k / n) for k in 0 … n - 1. The angle is reduced to an eighth of the circle first, where sine and
/// cosine lose nothing.
inline std::vector<Complex> roots_of_unity(std::int64_t n, int sign) {
  std::vector<Complex> r(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t octant = 8 * k / n;
    const bool swapped = (octant + 1) / 2 % 2 == 1;  // nearer to an odd multiple of a quarter turn
    const std::int64_t quarter = (octant + 1) / 2 % 4;
    const double angle =
        2 * std::numbers::pi * static_cast<double>(4 * k - ((octant + 1) / 2) * n) / (4.0 * static_cast<double>(n));
    double c = std::cos(angle);
    double s = std::sin(angle);
    if (swapped) {
      std::swap(c, s);
      c = -c;
    }
    if (quarter >= 2) {
      c = -c;
      s = -s;
    }
    r[static_cast<std::size_t>(k)] = {c, sign * s};
  }
  return r;
}

/// In place along one axis of [outer, n, inner]: the sum that defines the transform, n terms for each result, and no
/// factorisation, so that nothing is shared with what is tested.
inline void transform_axis(std::vector<Complex>& data, std::int64_t outer, std::int64_t n, std::int64_t inner,
                           int sign) {
  if (n == 1) return;
  const std::vector<Complex> roots = roots_of_unity(n, sign);
  std::vector<Complex> line(static_cast<std::size_t>(n));
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      Complex* const at = data.data() + o * n * inner + i;
      for (std::int64_t j = 0; j < n; ++j) line[static_cast<std::size_t>(j)] = at[j * inner];
      for (std::int64_t k = 0; k < n; ++k) {
        double re = 0;
        double im = 0;
        std::int64_t phase = 0;  // j * k modulo n
        for (const Complex& x : line) {
          const Complex& w = roots[static_cast<std::size_t>(phase)];
          re += x.real() * w.real() - x.imag() * w.imag();
          im += x.real() * w.imag() + x.imag() * w.real();
          phase += k;
          if (phase >= n) phase -= n;
        }
        at[k * inner] = {re, im};
      }
    }
}

/// All axes of [batch, n[0] … n[rank - 1]].
inline void transform_axes(const Fft& f, std::vector<Complex>& data, int sign) {
  std::int64_t inner = 1;
  for (int axis = f.rank - 1; axis >= 0; --axis) {
    const std::int64_t n = f.n[static_cast<std::size_t>(axis)];
    transform_axis(data, static_cast<std::int64_t>(data.size()) / (n * inner), n, inner, sign);
    inner *= n;
  }
}

/// The full spectrum of real data from its half: X[-k] = conj(X[k]), the minus modulo the size of each axis.
inline std::vector<Complex> full_spectrum(const Fft& f, const std::vector<Complex>& half) {
  const std::int64_t width = f.n[static_cast<std::size_t>(f.rank - 1)];
  const std::int64_t half_width = half_spectrum(width);
  const std::int64_t rows = points(f).value() / width;
  const std::int64_t rows_of_one = rows / f.batch;
  std::vector<Complex> full(static_cast<std::size_t>(rows * width));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t mirrored = 0;  // the row with every outer index negated, inside the same batch item
    std::int64_t place = 1;
    std::int64_t rest = row % rows_of_one;
    for (int axis = f.rank - 2; axis >= 0; --axis) {
      const std::int64_t n = f.n[static_cast<std::size_t>(axis)];
      mirrored += (n - rest % n) % n * place;
      rest /= n;
      place *= n;
    }
    mirrored += row / rows_of_one * rows_of_one;
    for (std::int64_t k = 0; k < width; ++k)
      full[static_cast<std::size_t>(row * width + k)] =
          k < half_width ? half[static_cast<std::size_t>(row * half_width + k)]
                         : std::conj(half[static_cast<std::size_t>(mirrored * half_width + width - k)]);
  }
  return full;
}

/// The transform by its definition, without a factor in either direction, as cuFFT computes it. Complex values are
/// pairs of doubles, real part first: the input and the result have the layout of what input_bytes and output_bytes
/// count. Throws Error where the input has another size.
inline std::vector<double> fft(const Fft& f, std::span<const double> in) {
  check(f);
  const bool real_in = f.kind == Fft::Kind::r2c;
  const std::int64_t expected = real_in ? points(f).value() : 2 * spectrum(f).value();
  if (static_cast<std::int64_t>(in.size()) != expected) throw Error("reference.fft", "the input has another size");
  std::vector<Complex> data;
  if (real_in)
    data.assign(in.begin(), in.end());
  else
    for (std::size_t i = 0; i < in.size(); i += 2) data.emplace_back(in[i], in[i + 1]);
  if (f.kind == Fft::Kind::c2r) data = full_spectrum(f, data);
  const bool inverse = f.kind == Fft::Kind::c2r || (f.kind == Fft::Kind::c2c && f.inverse);
  transform_axes(f, data, inverse ? 1 : -1);

  std::vector<double> out;
  const std::int64_t width = f.n[static_cast<std::size_t>(f.rank - 1)];
  const std::int64_t kept = f.kind == Fft::Kind::r2c ? half_spectrum(width) : width;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (static_cast<std::int64_t>(i) % width >= kept) continue;
    out.push_back(data[i].real());
    if (f.kind != Fft::Kind::c2r) out.push_back(data[i].imag());
  }
  return out;
}

}  // namespace vlmest::kernels::reference
