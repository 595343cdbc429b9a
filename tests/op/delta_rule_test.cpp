// SPDX-License-Identifier: Apache-2.0
// The operands and products of the gated delta rule's kernels, counted by hand for one chunk of one head.
#include <gtest/gtest.h>

#include <vlmest/op/delta_rule.hpp>

namespace vlmest::delta_rule_test {
namespace {

using Kind = DeltaRule::Kind;
constexpr DeltaRule chunk(Kind kind) { return {.kind = kind, .tokens = 64, .key_dim = 32, .value_dim = 16}; }

TEST(DeltaRule, MovesWhatTheKernelsAreHanded) {
  const Cost states = cost(chunk(Kind::states));
  // k, w of 32 and u of 16 channels in bf16, the decay's sums in fp32; the new values, the state, the last one in fp32.
  EXPECT_EQ(states.read, Bytes(64 * (2 * 32 + 16) * 2 + 64 * 4));
  EXPECT_EQ(states.written, Bytes(64 * 16 * 2 + 32 * 16 * 2 + 32 * 16 * 4));
  const Cost step = cost(DeltaRule{.kind = Kind::step, .batch = 3, .heads = 2, .key_dim = 32, .value_dim = 16});
  EXPECT_EQ(step.written, Bytes(6 * (16 * 2 + 32 * 16 * 4)));
}

TEST(DeltaRule, WholeChunksAreMultiplied) {
  DeltaRule o = chunk(Kind::outputs);
  const Flops one = cost(o).uncounted;
  EXPECT_EQ(one, flops(Macs(64 * 32 * 16 + 64 * 64 * (32 + 16))));
  o.tokens = 65;
  EXPECT_EQ(cost(o).uncounted, one * 2);
  EXPECT_EQ(cost(o).flops, Flops{});
}

TEST(DeltaRule, OneTokenNeedsNoChunk) {
  const DeltaRule o{.kind = Kind::step, .tokens = 2, .key_dim = 32, .value_dim = 16};
  EXPECT_EQ(cost(o).uncounted, flops(Macs(2 * 3 * 32 * 16)));
}

}  // namespace
}  // namespace vlmest::delta_rule_test
