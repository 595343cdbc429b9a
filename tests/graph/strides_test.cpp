// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/graph/eager.hpp>

namespace vlmest::strides_test {
namespace {

Shape kept(const Shape& shape, const Shape& strides) {
  return eager::strides_like(Tensor{.shape = shape, .strides = strides}, shape);
}

// torch.empty_like(x).stride() of torch 2.11 for these x.
TEST(StridesLike, DenseTensorsKeepTheirs) {
  EXPECT_EQ(kept({2, 3, 4}, {12, 4, 1}), (Shape{12, 4, 1}));
  EXPECT_EQ(kept({2, 4, 3}, {12, 1, 4}), (Shape{12, 1, 4}));
}

TEST(StridesLike, GapsCloseAndTheOrderStays) {
  // empty(2, 5, 3, 4, 6).permute(2, 0, 3, 1, 4)[0]: queries out of one projection.
  EXPECT_EQ(kept({2, 4, 5, 6}, {360, 6, 72, 1}), (Shape{120, 6, 24, 1}));
  // empty(4, 6)[:, ::2].t()
  EXPECT_EQ(kept({3, 4}, {2, 6}), (Shape{1, 3}));
}

TEST(StridesLike, ExpandedDimensionsStayWhereTheyAre) {
  EXPECT_EQ(kept({3, 4}, {1, 0}), (Shape{4, 1}));
  EXPECT_EQ(kept({4, 3}, {0, 1}), (Shape{3, 1}));
}

}  // namespace
}  // namespace vlmest::strides_test
