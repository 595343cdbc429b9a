// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include <vlmest/diagnose/inversion/multiples.hpp>
#include <vlmest/diagnose/inversion/score_matrix.hpp>

namespace vlmest::diagnose::score_matrix_test {
namespace {

TEST(ScoreMatrix, RootsOfTheLargestNumbers) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(score_matrix::root(most), 3037000499);
  EXPECT_EQ(score_matrix::root(std::int64_t{3037000499} * 3037000499), 3037000499);
  EXPECT_EQ(score_matrix::root(std::int64_t{3037000499} * 3037000499 - 1), 3037000498);
  for (const std::int64_t v : {0, 1, 2, 3, 4, 15, 16, 17}) {
    const std::int64_t n = score_matrix::root(v);
    EXPECT_TRUE(n * n <= v && (n + 1) * (n + 1) > v) << v;
  }
}

/// A figure that nobody's allocator was asked for ends in an answer, not in a sum beyond 64 bits.
TEST(ScoreMatrix, RequestsNearTheLargestNumber) {
  Failure f;
  const Bytes most(std::numeric_limits<std::int64_t>::max() - 1);
  f.tensor = PrintedSize::exactly(most);
  std::vector<Multiple> found;
  multiples_of::add(found, f, {.tensor = {.bytes = Bytes(most.value() / 3)}});
  multiples_of::add(found, f, {.tensor = {.bytes = Bytes(most.value() / 4000)}});
  for (const Multiple& m : found) EXPECT_LE(m.pictures, 4096);
  score_matrix::of_tiles({.heads = 16, .fixed = 577}, 2, f);
  score_matrix::solved({.heads = 16}, 1, 2, f);
}

}  // namespace
}  // namespace vlmest::diagnose::score_matrix_test
