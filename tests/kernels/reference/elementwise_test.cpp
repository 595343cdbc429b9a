// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include <kernels/reference/elementwise.hpp>

#include "../compare.hpp"

namespace vlmest::kernels {
namespace {

using Kind = Elementwise::Kind;

TEST(ReferenceElementwise, IsTheFunctionOfEachElement) {
  Random random;
  const std::int64_t n = 37;
  const auto a = random.normal(n, 0, 3), b = random.normal(n);
  const auto expect = [&](Kind kind, const std::function<double(double, double)>& f) {
    SCOPED_TRACE(name(kind));
    std::vector<double> expected;
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(f(a[i], b[i]));
    const bool two = info(kind).read == 2;
    expect_close(reference::elementwise({.kind = kind, .elements = n}, a,
                                        two ? std::span<const double>(b) : std::span<const double>()),
                 expected, 1e-14);
  };
  expect(Kind::copy, [](double x, double) { return x; });
  expect(Kind::add, [](double x, double y) { return x + y; });
  expect(Kind::mul, [](double x, double y) { return x * y; });
  expect(Kind::silu, [](double x, double) { return x / (1 + std::exp(-x)); });
  expect(Kind::silu_mul, [](double x, double y) { return x / (1 + std::exp(-x)) * y; });
  expect(Kind::gelu, [](double x, double) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); });
}

TEST(ReferenceElementwise, RefusesStreamsAndOperandsOfAnotherSize) {
  const std::vector<double> two{1, 2};
  EXPECT_THROW(reference::elementwise({.kind = Kind::read, .elements = 2}, two), Error);
  EXPECT_THROW(reference::elementwise({.kind = Kind::write, .elements = 2}, {}), Error);
  EXPECT_THROW(reference::elementwise({.kind = Kind::add, .elements = 2}, two), Error);
  EXPECT_THROW(reference::elementwise({.kind = Kind::copy, .elements = 3}, two), Error);
}

}  // namespace
}  // namespace vlmest::kernels
