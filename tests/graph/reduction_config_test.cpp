// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>

namespace vlmest::reduction_config_test {
namespace {

constexpr Gpu h200{.sm = 90, .multiprocessors = 132};

Bytes total(std::int64_t outputs, std::int64_t inputs, int element_size) {
  const eager::ReductionScratch s =
      eager::reduction_scratch(eager::Reduction{.outputs = outputs, .inputs = inputs}, element_size, h200);
  return s.partial + s.semaphores;
}

// Requested bytes of torch 2.11 on an H200: sum() and all() of booleans less the int64 copy that sum() makes first.
TEST(Reduction, ScratchOfSumsOverPictures) {
  EXPECT_EQ(total(1, 3 * 364 * 364, 8), Bytes(396));
  EXPECT_EQ(total(2, 3 * 364 * 364, 8), Bytes(792));
  EXPECT_EQ(total(4, 3 * 364 * 364, 8), Bytes(1584));
  EXPECT_EQ(total(34, 3 * 364 * 364, 8), Bytes(4488));
  EXPECT_EQ(total(10, 3 * 384 * 384, 8), Bytes(35393720 - 10 * 3 * 384 * 384 * 8));
  EXPECT_EQ(total(5, 3 * 512 * 512, 8), Bytes(31461140 - 5 * 3 * 512 * 512 * 8));
  EXPECT_EQ(total(1, 3 * 512 * 512, 8), Bytes(772));
  EXPECT_EQ(total(200, 3 * 512 * 512, 8), Bytes(10400));
}

TEST(Reduction, ScratchOfVectors) {
  EXPECT_EQ(total(1, 100, 8), Bytes(0));
  EXPECT_EQ(total(1, 200000, 8), Bytes(204));
  EXPECT_EQ(total(1, 200000, 1), Bytes(29));
  EXPECT_EQ(total(1, 131072, 8), Bytes(132));
  EXPECT_EQ(total(1, 131072, 1), Bytes(20));
  EXPECT_EQ(total(1, 1048576, 8), Bytes(1028));
  EXPECT_EQ(total(1, 3 * 4194304, 8), Bytes(4228));
  EXPECT_EQ(total(1, 3 * 4194304, 1), Bytes(532));
}

TEST(Reduction, ManyOutputsNeedNone) { EXPECT_EQ(total(2704, 196, 8), Bytes(0)); }

Bytes total(const Shape& shape, const Shape& strides, std::initializer_list<int> dims) {
  std::array<bool, Shape::max_rank> reduced{};
  for (int d : dims) reduced[static_cast<std::size_t>(d)] = true;
  const eager::ReductionScratch s =
      eager::reduction_scratch(Tensor{.shape = shape, .strides = strides, .dtype = DType::fp32}, reduced, 4, h200);
  return s.partial + s.semaphores;
}
Bytes total(const Shape& shape, std::initializer_list<int> dims) {
  return total(shape, contiguous_strides(shape), dims);
}

// Requested bytes of torch 2.11 on an H200: means over rows or columns of an optimizer, of pooled features that lie
// with their channels first.
TEST(Reduction, ScratchOfRowsAndColumns) {
  EXPECT_EQ(total({49155, 2048}, {0}), Bytes(138412096));
  EXPECT_EQ(total({4304, 1152}, {0}), Bytes(40108068));
  EXPECT_EQ(total({2048, 2048}, {0}), Bytes(33554496));
  EXPECT_EQ(total({2048, 2048}, {1}), Bytes(0));
  EXPECT_EQ(total({2, 356, 2560}, {2}), Bytes(0));
  EXPECT_EQ(total({2, 256, 1152}, {1152 * 256, 1, 256}, {2}), Bytes(4718608));
  EXPECT_EQ(total({4, 256, 1152}, {1152 * 256, 1, 256}, {2}), Bytes(9437216));
}

TEST(Reduction, NeighbouringDimensionsAreOne) {
  EXPECT_EQ(total({16, 269, 2048}, {0, 1}), total({16 * 269, 2048}, {0}));
  EXPECT_EQ(total({49155, 1, 2048}, {0}), Bytes(138412096));
  EXPECT_EQ(total({64, 32, 2048}, {2048 * 32, 2048, 1}, {0, 1}), total({2048, 2048}, {0}));
  // With a gap between them they are two, but what is allocated depends on their product alone.
  EXPECT_EQ(total({64, 32, 2048}, {2048 * 40, 2048, 1}, {0, 1}), total({2048, 2048}, {0}));
}

TEST(Reduction, FewerMultiprocessorsSplitLess) {
  const eager::Reduction r{.outputs = 34, .inputs = 3 * 364 * 364};
  EXPECT_LT(eager::reduction_scratch(r, 8, Gpu{75, 40}).partial, eager::reduction_scratch(r, 8, h200).partial);
}

}  // namespace
}  // namespace vlmest::reduction_config_test
