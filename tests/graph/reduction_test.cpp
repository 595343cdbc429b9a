// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>

namespace vlmest::reduction_test {
namespace {

std::int64_t scratch(const Builder& b) {
  std::int64_t n = 0;
  for (auto s : b.graph.scratch) n += s.value();
  return n;
}

/// mean(-1) of [batch, channels, positions] read as [batch, positions, channels].
std::int64_t channel_mean(std::int64_t batch, std::int64_t positions, std::int64_t channels, DType t) {
  Builder b;
  Value x = b.existing("x", Role::input, t, {batch, channels, positions});
  x = eager::transpose(std::move(x), 1, 2);
  eager::mean(std::move(x), -1, true);
  return scratch(b);
}

std::int64_t row_mean(std::int64_t rows, std::int64_t width) {
  Builder b;
  eager::mean(b.existing("x", Role::input, DType::fp32, {rows, 1, width}), -1, true);
  return scratch(b);
}

std::int64_t count_of(std::int64_t n) {
  Builder b;
  eager::sum_all(b.existing("x", Role::input, DType::boolean, {n}));
  return scratch(b);
}

std::int64_t running_sum(const Shape& s, DType t) {
  Builder b;
  eager::cumsum(b.existing("x", Role::input, t, s), DType::int64);
  return scratch(b);
}

// Requested bytes of torch 2.11 on an H200: the peak inside the call less its result.
TEST(Reduction, AcrossTheSlowDimensionIsSplitOverBlocks) {
  EXPECT_EQ(channel_mean(1, 256, 1152, DType::fp32), 2359304);
  EXPECT_EQ(channel_mean(1, 256, 1152, DType::bf16), 2359304);
  EXPECT_EQ(channel_mean(4, 256, 1152, DType::fp32), 9437216);
  EXPECT_EQ(channel_mean(2, 64, 1152, DType::fp32), 1179652);
  EXPECT_EQ(channel_mean(3, 64, 1152, DType::fp32), 1769480);
  EXPECT_EQ(channel_mean(8, 1024, 1152, DType::fp32), 75497728);
  EXPECT_EQ(channel_mean(5, 256, 2048, DType::fp32), 20971560);
}

TEST(Reduction, FewValuesAThreadNeedNoSplit) {
  EXPECT_EQ(channel_mean(1, 64, 1152, DType::fp32), 0);
  EXPECT_EQ(channel_mean(2, 64, 768, DType::fp32), 0);
  EXPECT_EQ(channel_mean(16, 144, 640, DType::fp32), 0);
}

TEST(Reduction, RowsAreReducedWithinABlock) {
  for (std::int64_t width : {1024, 2560, 5376, 16384})
    for (std::int64_t rows : {1, 2, 16}) EXPECT_EQ(row_mean(rows, width), 0) << rows << "x" << width;
}

TEST(Reduction, ACountCastsAndSplitsFromManyValuesOn) {
  EXPECT_EQ(count_of(1000), 8000);
  EXPECT_EQ(count_of(100000), 800000);
  EXPECT_EQ(count_of(131072), 1048576 + 128 + 4);
  EXPECT_EQ(count_of(1048576), 8388608 + 1024 + 4);
  EXPECT_EQ(count_of(4194304), 33554432 + 4096 + 4);
}

TEST(Reduction, OneRowIsScannedAsAVectorSeveralAreNot) {
  EXPECT_EQ(running_sum({100}, DType::int64), 1279);
  EXPECT_EQ(running_sum({1, 100}, DType::int32), 2079);
  EXPECT_EQ(running_sum({1, 65536}, DType::int32), 526591);
  EXPECT_EQ(running_sum({2, 612}, DType::int32), 9792);
}

}  // namespace
}  // namespace vlmest::reduction_test
