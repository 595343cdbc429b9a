// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/op/op.hpp>

namespace vlmest::grouped_matmul_test {
namespace {

TEST(GroupedMatmul, ReadsOnlyTheMatricesOfGroupsThatHaveRows) {
  const GroupedMatmul o{.rows = 16, .n = 1536, .k = 2048, .groups = 128, .active = 15};
  const Cost c = cost(o);
  EXPECT_EQ(c.read, Bytes(2 * (16 * 2048 + 15 * 1536 * 2048)));
  EXPECT_EQ(c.written, Bytes(2 * 16 * 1536));
  EXPECT_EQ(c.engine, Engine::tensor_core);
}

TEST(GroupedMatmul, ItsArithmeticIsNotCountedButKnown) {
  const GroupedMatmul o{.rows = 13888, .n = 1536, .k = 2048, .groups = 128, .active = 128};
  EXPECT_EQ(cost(o).flops, Flops{});
  EXPECT_EQ(cost(o).flops_causal, Flops{});
  EXPECT_EQ(cost(Op(o)).uncounted, flops(macs(Matmul{.m = 13888, .n = 1536, .k = 2048})));
}

TEST(GroupedMatmul, TheGradientOfTheMatricesWritesAllOfThem) {
  const Cost c = cost(GroupedMatmul{.rows = 24, .n = 8, .k = 32, .groups = 4, .active = 3, .per_group = true});
  EXPECT_EQ(c.read, Bytes(2 * 24 * (8 + 32)));
  EXPECT_EQ(c.written, Bytes(2 * 4 * 8 * 32));
  EXPECT_EQ(c.uncounted, flops(Macs(24 * 8 * 32)));
}

TEST(GroupedMatmul, OverflowThrows) {
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_THROW(cost(GroupedMatmul{.rows = big, .n = big, .k = big}), Overflow);
}

}  // namespace
}  // namespace vlmest::grouped_matmul_test
