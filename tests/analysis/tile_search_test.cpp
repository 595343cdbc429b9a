// SPDX-License-Identifier: Apache-2.0
// Where the constants of the search for a product's tiling come from.
#include <gtest/gtest.h>

#include <vlmest/analysis/matmul_time.hpp>

namespace vlmest::tile_search_test {
namespace {

/// The slope of the line through 0 that is nearest, over ratios x of the shorter to the longer time, to what the p-norm
/// adds to the longer one: the least of the integral of (f(x) - a x)^2 over [0, 1] is at a = 3 times that of f(x) x.
double slope(double p) {
  constexpr int n = 10000;
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    const double x = (i + 0.5) / n;
    sum += (tiled::overlapped({1}, {x}, p).value - 1) * x;
  }
  return 3 * sum / n;
}

TEST(TileSearch, TheShorterTimesShareIsTheNormsAsALine) {
  EXPECT_NEAR(slope(2.7), tiled::shorter_share, 0.005);
  EXPECT_GT(slope(2.5), tiled::shorter_share + 0.02);
  EXPECT_LT(slope(3), tiled::shorter_share - 0.02);
}

}  // namespace
}  // namespace vlmest::tile_search_test
