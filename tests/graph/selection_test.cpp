// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>

namespace vlmest::selection_test {
namespace {

// Peaks of torch 2.11 on an H200 beyond the result: nonzero of n booleans, all true and none true.
TEST(Nonzero, SelectingByTiles) {
  for (std::int64_t n : {1, 676, 2704, 4096, 50000, 100000}) EXPECT_EQ(eager::nonzero_selecting(n), Bytes(1027)) << n;
  EXPECT_EQ(eager::nonzero_selecting(200000), Bytes(1283));
  EXPECT_EQ(eager::nonzero_selecting(500000), Bytes(1795));
  EXPECT_EQ(eager::nonzero_selecting(1000000), Bytes(2819));
  EXPECT_EQ(eager::nonzero_selecting(5000000), Bytes(10243));
}
constexpr Gpu h200{.sm = 90, .multiprocessors = 132};
TEST(Nonzero, CountingByBlocks) {
  EXPECT_EQ(eager::nonzero_counting(5000, h200), Bytes(21507));
  EXPECT_EQ(eager::nonzero_counting(5000000, h200), Bytes(21507));
  EXPECT_LT(eager::nonzero_counting(4096, h200), eager::nonzero_selecting(4096));
}

// What an indexed read allocates beside its result: the positions, or what finding them takes beyond the result.
Bytes scratch_of_last(const Graph& g) {
  Bytes r{};
  for (auto b : g.scratch_of(g.nodes.back())) r += b;
  return r;
}
TEST(Nonzero, IndexedReadAndWrite) {
  Builder b;
  const Value mask = b.existing("mask", Role::input, DType::boolean, {1, 100});
  Value x = b.existing("x", Role::input, DType::int64, {1, 100});
  Value read = eager::masked_index(x, mask, 100);
  EXPECT_EQ(read.shape(), Shape{100});
  EXPECT_EQ(scratch_of_last(b.graph), Bytes(1827));
  eager::masked_index_put_(x, mask, read, 100);
  EXPECT_EQ(scratch_of_last(b.graph), Bytes(2627));
  const Value large = b.existing("mask", Role::input, DType::boolean, {1, 5000});
  Value y = b.existing("y", Role::input, DType::int64, {1, 5000});
  eager::masked_index(y, large, 5000);
  EXPECT_EQ(scratch_of_last(b.graph), Bytes(80000));
}

TEST(Unfold, WindowsAreViews) {
  Builder b;
  const Value x = b.existing("x", Role::input, DType::boolean, {2, 384, 384});
  const Value w = eager::unfold(eager::unfold(x, 1, 14, 14), 2, 14, 14);
  EXPECT_EQ(w.shape(), (Shape{2, 27, 27, 14, 14}));
  EXPECT_EQ(w.tensor().strides, (Shape{384 * 384, 14 * 384, 14, 384, 1}));
  EXPECT_EQ(b.graph.owner(w.id()), x.id());
  EXPECT_THROW(eager::unfold(x, 1, 385, 1), Error);
}

}  // namespace
}  // namespace vlmest::selection_test
