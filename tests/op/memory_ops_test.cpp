// SPDX-License-Identifier: Apache-2.0
// Ops that are known by the bytes they move, against products written out by hand.
#include <gtest/gtest.h>

#include <vlmest/op/cross_entropy.hpp>
#include <vlmest/op/elementwise.hpp>
#include <vlmest/op/gather.hpp>
#include <vlmest/op/op.hpp>
#include <vlmest/op/rope.hpp>

namespace vlmest::memory_ops_test {
namespace {

void expect_moves(const MemoryOp& o, std::int64_t read, std::int64_t written, int kernels = 1) {
  const Cost c = cost(Op(o));
  EXPECT_EQ(c.read, Bytes(read));
  EXPECT_EQ(c.written, Bytes(written));
  EXPECT_EQ(c.workspace, Bytes{});
  EXPECT_EQ(c.flops, Flops{});
  EXPECT_EQ(c.kernels, kernels);
}

TEST(Elementwise, EveryKindCountsItsOperandsAndItsResult) {
  using Kind = Elementwise::Kind;
  const auto moves = [](Kind kind) { return memory_op(Elementwise{.kind = kind, .elements = 1001}); };
  expect_moves(moves(Kind::copy), 2002, 2002);
  expect_moves(moves(Kind::read), 2002, 0);
  expect_moves(moves(Kind::write), 0, 2002);
  expect_moves(moves(Kind::add), 4004, 2002);
  expect_moves(moves(Kind::mul), 4004, 2002);
  expect_moves(moves(Kind::silu), 2002, 2002);
  expect_moves(moves(Kind::gelu), 2002, 2002);
  expect_moves(moves(Kind::silu_mul), 4004, 2002);
  EXPECT_EQ(name(Kind::silu_mul), "silu_mul");
  EXPECT_EQ(name(Kind::write), "write");
}

TEST(Elementwise, BytesFollowTheType) {
  expect_moves(memory_op(Elementwise{.elements = 10, .dtype = DType::fp32}), 40, 40);
  expect_moves(memory_op(Elementwise{.elements = 3, .dtype = DType::int4}), 2, 2);
  EXPECT_EQ(cost(Elementwise{.elements = 10, .dtype = DType::fp32}).dtype, DType::fp32);
}

TEST(RotaryEmbedding, MovesQueriesAndKeysAndReadsOneTableOfAngles) {
  // Llama 3 8B: 4096 tokens, 32 and 8 heads of 128.
  const RotaryEmbedding o{.rows = 4096, .heads = 32, .kv_heads = 8, .head_dim = 128, .rotary_dim = 128};
  expect_moves(memory_op(o), 2 * 4096 * 40 * 128 + 2 * 2 * 4096 * 128, 2 * 4096 * 40 * 128);
}

TEST(RotaryEmbedding, SequencesShareAnglesWhichHaveTheirOwnTypeAndWidth) {
  const RotaryEmbedding o{.batch = 3,
                          .rows = 100,
                          .heads = 12,
                          .kv_heads = 2,
                          .head_dim = 96,
                          .rotary_dim = 48,
                          .dtype = DType::fp16,
                          .angles = DType::fp32};
  expect_moves(memory_op(o), 2 * 3 * 100 * 14 * 96 + 2 * 4 * 100 * 48, 2 * 3 * 100 * 14 * 96);
}

TEST(Gather, ReadsTheRowsItTakesAndTheirNumbers) {
  expect_moves(memory_op(Gather{.rows = 577, .width = 4096, .table_rows = 32064}), 2 * 577 * 4096 + 8 * 577,
               2 * 577 * 4096);
  expect_moves(memory_op(Gather{.rows = 5, .width = 3, .table_rows = 2, .dtype = DType::fp32, .index = DType::int32}),
               4 * 15 + 4 * 5, 4 * 15);
}

TEST(CrossEntropy, ReadsTheLogitsOnce) {
  // The second kernel reads losses and targets again for the mean.
  expect_moves(memory_op(CrossEntropy{.rows = 1024, .vocab = 32064}), 4 * 1024 * 32064 + 2 * 8 * 1024 + 4 * 1024,
               4 * 1024 + 4, 2);
  expect_moves(memory_op(CrossEntropy{.rows = 3, .vocab = 7, .dtype = DType::bf16}), 2 * 21 + 2 * 8 * 3 + 4 * 3, 16, 2);
}

TEST(MemoryOps, CostIsThatOfTheirBytes) {
  const CrossEntropy o{.rows = 3, .vocab = 7};
  EXPECT_EQ(cost(o).read, memory_op(o).read);
  EXPECT_EQ(cost(o).kernels, 2);
  static_assert(cost(Gather{.rows = 2, .width = 4}).written == Bytes(16));
  static_assert(cost(RotaryEmbedding{.rows = 2}).written == Bytes(8));
}

TEST(MemoryOps, OverflowThrows) {
  const std::int64_t big = std::int64_t{1} << 32;
  EXPECT_THROW(memory_op(Elementwise{.elements = std::int64_t{1} << 62}), Overflow);
  EXPECT_THROW(memory_op(RotaryEmbedding{.rows = big, .heads = big}), Overflow);
  EXPECT_THROW(memory_op(Gather{.rows = big, .width = big}), Overflow);
  EXPECT_THROW(memory_op(CrossEntropy{.rows = big, .vocab = big}), Overflow);
}

}  // namespace
}  // namespace vlmest::memory_ops_test
