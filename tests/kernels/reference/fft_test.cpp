// SPDX-License-Identifier: Apache-2.0
#include <kernels/reference/fft.hpp>

#include "../compare.hpp"

namespace vlmest::kernels {
namespace {

using reference::Complex;

/// Every output as one sum over all points of its batch item, the angle of each term from scratch in long double.
std::vector<double> brute_force(const Fft& f, const std::vector<double>& in) {
  const bool real_in = f.kind == Fft::Kind::r2c;
  const bool inverse = f.kind == Fft::Kind::c2r || f.inverse;
  const std::int64_t n0 = f.n[0];
  const std::int64_t n1 = f.rank > 1 ? f.n[1] : 1;
  const std::int64_t n2 = f.rank > 2 ? f.n[2] : 1;
  const std::int64_t volume = n0 * n1 * n2;
  const std::int64_t last = f.n[static_cast<std::size_t>(f.rank - 1)];
  std::vector<double> out;
  for (std::int64_t item = 0; item < f.batch; ++item)
    for (std::int64_t k = 0; k < volume; ++k) {
      if (f.kind == Fft::Kind::r2c && k % last >= half_spectrum(last)) continue;
      std::complex<long double> sum = 0;
      for (std::int64_t j = 0; j < volume; ++j) {
        const long double turns = static_cast<long double>(j / (n1 * n2) * (k / (n1 * n2)) % n0) / n0 +
                                  static_cast<long double>(j / n2 % n1 * (k / n2 % n1) % n1) / n1 +
                                  static_cast<long double>(j % n2 * (k % n2) % n2) / n2;
        const auto w = std::polar(1.0L, (inverse ? 2 : -2) * std::numbers::pi_v<long double> * turns);
        const auto at = static_cast<std::size_t>(item * volume + j);
        sum +=
            w * (real_in ? std::complex<long double>(in[at]) : std::complex<long double>(in[2 * at], in[2 * at + 1]));
      }
      out.push_back(static_cast<double>(sum.real()));
      if (f.kind != Fft::Kind::c2r) out.push_back(static_cast<double>(sum.imag()));
    }
  return out;
}

const std::vector<Fft> sizes{
    {.batch = 3, .n = {1}, .rank = 1},  {.n = {2}, .rank = 1},    {.batch = 2, .n = {16}, .rank = 1},
    {.batch = 2, .n = {15}, .rank = 1}, {.n = {31}, .rank = 1},   {.batch = 2, .n = {4, 6}, .rank = 2},
    {.n = {5, 7}, .rank = 2},           {.n = {8, 1}, .rank = 2}, {.batch = 2, .n = {3, 4, 5}, .rank = 3}};

TEST(ReferenceFft, IsTheDefinitionOfTheComplexTransform) {
  Random random;
  for (Fft f : sizes)
    for (const bool inverse : {false, true}) {
      f.inverse = inverse;
      const auto in = random.uniform(2 * points(f).value());
      expect_close(reference::fft(f, in), brute_force(f, in), 1e-14);
    }
}

TEST(ReferenceFft, KeepsHalfOfARealSpectrum) {
  Random random;
  for (Fft f : sizes) {
    f.kind = Fft::Kind::r2c;
    const auto in = random.uniform(points(f).value());
    const auto out = reference::fft(f, in);
    EXPECT_EQ(static_cast<std::int64_t>(out.size()), 2 * spectrum(f).value());
    expect_close(out, brute_force(f, in), 1e-14);
  }
}

TEST(ReferenceFft, TheInverseOfARealTransformIsTheDataTimesTheNumberOfPoints) {
  Random random;
  for (Fft f : sizes) {
    f.kind = Fft::Kind::r2c;
    auto in = random.uniform(points(f).value());
    const auto half = reference::fft(f, in);
    f.kind = Fft::Kind::c2r;
    const auto back = reference::fft(f, half);
    for (double& v : in) v *= static_cast<double>(points(f).value() / f.batch);
    expect_close(back, in, 1e-14);
  }
}

TEST(ReferenceFft, RootsOfUnityAreExactWhereTheyCanBe) {
  for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 12, 360, 4099})
    for (const int sign : {-1, 1}) {
      const auto roots = reference::roots_of_unity(n, sign);
      ASSERT_EQ(static_cast<std::int64_t>(roots.size()), n);
      for (std::int64_t k = 0; k < n; ++k) {
        const auto expected =
            std::polar(1.0L, sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / n);
        const Complex& got = roots[static_cast<std::size_t>(k)];
        EXPECT_NEAR(got.real(), static_cast<double>(expected.real()), 2.3e-16) << k << " of " << n;
        EXPECT_NEAR(got.imag(), static_cast<double>(expected.imag()), 2.3e-16) << k << " of " << n;
      }
      if (n % 4 == 0) {
        EXPECT_EQ(roots[static_cast<std::size_t>(n / 4)], Complex(0, sign));
      }
      if (n % 2 == 0) {
        EXPECT_EQ(roots[static_cast<std::size_t>(n / 2)], Complex(-1, 0));
      }
    }
}

TEST(ReferenceFft, RefusesInputOfAnotherSizeAndWhatNoLibraryDoes) {
  const std::vector<double> eight(8);
  EXPECT_EQ(reference::fft({.n = {4}, .rank = 1}, eight).size(), 8u);
  EXPECT_THROW(reference::fft({.n = {8}, .rank = 1}, eight), Error);
  EXPECT_THROW(reference::fft({.n = {4}, .rank = 1, .dtype = DType::bf16}, eight), Error);
}

}  // namespace
}  // namespace vlmest::kernels
