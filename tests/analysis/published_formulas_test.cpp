// SPDX-License-Identifier: Apache-2.0
// The published formulas, held against the numbers that their papers give.
#include <gtest/gtest.h>

#include <vlmest/analysis/published_formulas.hpp>
#include <vlmest/unit/error.hpp>

namespace vlmest::published::published_formulas_test {
namespace {

/// GPT-3 of Korthikanti et al., table 3: 96 layers of 12,288 channels and 96 heads, sequences of 2,048.
constexpr Transformer gpt3{
    .tokens = 2048, .sequence = 2048, .hidden = 12288, .heads = 96, .layers = 96, .vocab = 51200};

TEST(PublishedFormulas, ActivationsOfGpt3) {
  // Section 5: 5 a s / h is 80 for GPT-3, so selective recomputation saves 70 % of 34 + 80.
  const double sbh = 2048.0 * 12288.0;
  EXPECT_DOUBLE_EQ(static_cast<double>(layer_activations(gpt3).value()), (34 + 80) * sbh);
  EXPECT_DOUBLE_EQ(static_cast<double>(layer_activations_selective(gpt3).value()), 34 * sbh);
  EXPECT_DOUBLE_EQ(static_cast<double>(layer_activations_full(gpt3).value()), 2 * sbh);
  EXPECT_NEAR(1 - 34.0 / 114.0, 0.70, 0.005);
  EXPECT_DOUBLE_EQ(static_cast<double>(output_activations(gpt3).value()), 4 * sbh * (1 + 51200.0 / 12288.0));
}

TEST(PublishedFormulas, FollowBatchAndLength) {
  Transformer t = gpt3;
  t.tokens *= 3;  // a larger batch scales everything
  EXPECT_EQ(layer_activations(t), layer_activations(gpt3) * 3);
  t = gpt3;
  t.tokens *= 2;
  t.sequence *= 2;  // longer sequences scale the scores by their square
  EXPECT_EQ(layer_activations(t) - layer_activations_selective(t),
            (layer_activations(gpt3) - layer_activations_selective(gpt3)) * 4);
  t.vocab = 0;
  EXPECT_EQ(output_activations(t), Bytes{});
}

TEST(PublishedFormulas, SublinearSegments) {
  Transformer t = gpt3;
  t.layers = 16;  // four segments of four
  EXPECT_EQ(sublinear_activations(t), layer_activations_full(t) * 4 + layer_activations(t) * 4);
  t.layers = 18;  // four segments, the longest of five
  EXPECT_EQ(sublinear_activations(t), layer_activations_full(t) * 4 + layer_activations(t) * 5);
}

TEST(PublishedFormulas, StatesOfABillionParameters) {
  // ZeRO, section 3.1: GPT-2 with 1.5 billion parameters needs at least 24 GB.
  EXPECT_EQ(zero_states(Elements(1'500'000'000)), Bytes(24'000'000'000));
  EXPECT_EQ(megatron_states(Elements(10)), Bytes(180));
  EXPECT_EQ(frozen_weights(Elements(10)), Bytes(20));
  EXPECT_THROW(zero_states(Elements(INT64_MAX / 8)), Error);
}

}  // namespace
}  // namespace vlmest::published::published_formulas_test
