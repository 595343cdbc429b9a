// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>

namespace vlmest::routing_test {
namespace {

// Requested bytes at the peak of the call less those after it; torch 2.11 on one NVIDIA H200 (sm_90, 132
// multiprocessors).
TEST(RoutingScratch, SortOfInt64AsRecorded) {
  const std::pair<std::int64_t, std::int64_t> recorded[] = {
      {2, 16},          {16, 128},         {1000, 8000},        {4096, 32768},      {4097, 116743},
      {4608, 128511},   {4609, 130055},    {7744, 204799},      {9216, 240127},     {9217, 241671},
      {13824, 351743},  {13825, 353287},   {13888, 354303},     {18432, 463359},    {18433, 464903},
      {50000, 1228415}, {300000, 7284479}, {1000000, 24240127}, {3000000, 72684543}};
  for (const auto& [n, bytes] : recorded) EXPECT_EQ(eager::sort_workspace(n), Bytes(bytes)) << n;
}

TEST(RoutingScratch, TopkAsRecorded) {
  const std::int64_t recorded[][3] = {{1, 128, 0},          {3000, 128, 0},         {1000, 512, 0},
                                      {4001, 384, 0},       {801, 800, 1254043},    {4001, 400, 6258843},
                                      {5000, 512, 7821279}, {10000, 1024, 15641279}};
  for (const auto& [rows, width, bytes] : recorded)
    EXPECT_EQ(eager::topk_workspace(rows, width), Bytes(bytes)) << rows << " x " << width;
}

/// Keys of so few bits that one pass sorts them need no second buffer; recorded in the backward of gathered biases.
TEST(RoutingScratch, SortOfOnePassAsRecorded) {
  EXPECT_EQ(eager::radix_sort_workspace(800, 5), Bytes(1));
  EXPECT_EQ(eager::radix_sort_workspace(2848, 5), Bytes(3583));
  EXPECT_EQ(eager::radix_sort_workspace(2848, 8), Bytes(3583));
  EXPECT_EQ(eager::radix_sort_workspace(2848, 9), Bytes(3583 + 2048 + 2 * 22784));
}

TEST(Routing, TopkIsOrderedByAKernelOfItsOwn) {
  Builder b;
  const Value x = b.existing("x", Role::input, DType::bf16, {8, 16});
  eager::topk(x, 4);
  EXPECT_EQ(cost(b.graph.op(b.graph.nodes.back())).kernels, 2);
  eager::topk(x, 4, false);
  EXPECT_EQ(cost(b.graph.op(b.graph.nodes.back())).kernels, 1);
}

struct Product {
  Bytes scratch{};
  int kernels = 0;
};
Product grouped(std::int64_t groups, std::int64_t rows, std::int64_t n, std::int64_t k, DType t, int sm = 90) {
  Builder b;
  b.gpu.sm = sm;
  const Value a = b.existing("a", Role::input, t, {rows, k}), w = b.existing("w", Role::input, t, {groups, n, k}),
              offsets = b.existing("offsets", Role::input, DType::int32, {groups});
  const Value y = eager::grouped_mm(a, eager::transpose(w, 1, 2), offsets, 5);
  EXPECT_EQ(y.shape(), (Shape{rows, n}));
  const Node& node = b.graph.nodes.back();
  Product r{.kernels = cost(b.graph.op(node)).kernels};
  for (auto s : b.graph.scratch_of(node)) r.scratch += s;
  EXPECT_EQ(r.scratch, cost(b.graph.op(node)).workspace);
  return r;
}

TEST(RoutingScratch, GroupedProductAsRecorded) {
  EXPECT_EQ(grouped(128, 16, 1536, 2048, DType::bf16).scratch, Bytes(75264));
  EXPECT_EQ(grouped(128, 40000, 2048, 768, DType::bf16).scratch, Bytes(75264));
  EXPECT_EQ(grouped(8, 4096, 128, 1024, DType::bf16).scratch, Bytes(68064));
  EXPECT_EQ(grouped(60, 4000, 1024, 1024, DType::bf16).scratch, Bytes(71184));
  EXPECT_EQ(grouped(7, 7000, 1024, 512, DType::bf16).scratch, Bytes(68028));  // an odd count is padded by one pointer
  EXPECT_EQ(grouped(128, 16, 1536, 2048, DType::bf16).kernels, 2);
}

TEST(RoutingScratch, OtherTypesAndDevicesRunAProductForEachGroup) {
  for (const Product r : {grouped(128, 16, 64, 32, DType::fp16), grouped(128, 16, 64, 32, DType::fp32),
                          grouped(128, 16, 64, 32, DType::bf16, 80)}) {
    EXPECT_EQ(r.scratch, Bytes{});
    EXPECT_EQ(r.kernels, 5);
  }
}

TEST(Routing, TopkKeepsTheTypeAndCountsIndicesInInt64) {
  Builder b;
  const eager::Ranked r = eager::topk(b.existing("p", Role::input, DType::fp32, {3, 7}), 2);
  EXPECT_EQ(r.values.shape(), (Shape{3, 2}));
  EXPECT_EQ(r.values.dtype(), DType::fp32);
  EXPECT_EQ(r.indices.shape(), (Shape{3, 2}));
  EXPECT_EQ(r.indices.dtype(), DType::int64);
}

}  // namespace
}  // namespace vlmest::routing_test
