// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <gtest/gtest.h>

#include <vlmest/diagnose/inversion/score_matrix.hpp>

namespace vlmest::diagnose::score_matrix_test {
namespace {

Failure asked(std::int64_t bytes) {
  Failure f;
  f.tensor = PrintedSize::exactly(Bytes(bytes));
  f.total = PrintedSize::exactly(Bytes(80) * (std::int64_t{1} << 30));
  return f;
}

TEST(ScoreMatrix, LengthsToTheLastDigit) {
  for (const std::int64_t n : {577, 39026, 96516}) {
    const auto found = score_matrices(asked(16 * n * n * 2), {AttentionHeads{.heads = 16}}, {});
    ASSERT_FALSE(found.empty()) << n;
    EXPECT_EQ(found[0].length, n);
    EXPECT_EQ(found[0].bytes().value(), 16 * n * n * 2);
  }
}

/// 32 x 3,200 x 3,200 scores in 16 bits are as many bytes as the embedding of LLaMA 13B in 32, [32000, 5120].
TEST(ScoreMatrix, BytesOfAWeightAreNoProof) {
  const Failure f = asked(655360000);
  const auto found = score_matrices_of_any_model(f, {});
  ASSERT_FALSE(found.empty());
  EXPECT_NE(score_ground(f, found), ScoreGround::digits);
}

/// A figure that no allocator was asked for ends in an answer, not in a sum beyond 64 bits. The root of the largest
/// number is 3,037,000,499.
TEST(ScoreMatrix, RequestsNearTheLargestNumber) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t bytes : {most, most - 1, std::int64_t{3037000499} * 3037000499})
    for (const AttentionHeads& of : {AttentionHeads{.heads = 1}, AttentionHeads{.heads = 16, .fixed = 577}}) {
      for (const ScoreMatrix& m : score_matrices(asked(bytes), {of}, {})) EXPECT_LE(m.length, 3037000499);
      for (const ScoreMatrix& m : score_matrices_of_any_model(asked(bytes), {})) EXPECT_LE(m.length, 3037000499);
    }
}

}  // namespace
}  // namespace vlmest::diagnose::score_matrix_test
