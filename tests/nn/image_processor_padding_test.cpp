// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/nn/image_processor/padding.hpp>

namespace vlmest::image_processor_padding_test {
namespace {

TEST(BatchPadding, GroupingBySize) {
  const std::vector<std::int64_t> lengths{100, 900, 120, 880};
  const auto p = batch_padding(lengths, 2);
  EXPECT_EQ(p.tokens, 2000);
  EXPECT_EQ(p.padded, 2 * 900 + 2 * 880);
  EXPECT_EQ(p.grouped, 2 * 900 + 2 * 120);
  EXPECT_EQ(p.saved(), 1520);
  EXPECT_DOUBLE_EQ(p.wasted(), 1560.0 / 3560.0);
  EXPECT_DOUBLE_EQ(p.wasted_grouped(), 40.0 / 2040.0);
  EXPECT_EQ(batch_padding(lengths, 4).saved(), 0);
  EXPECT_EQ(batch_padding(lengths, 1).wasted(), 0);
  EXPECT_EQ(batch_padding({}, 3).wasted(), 0);
  // The long one stands alone in the short batch.
  EXPECT_EQ(batch_padding(std::vector<std::int64_t>{10, 1, 1}, 2).grouped, 12);
  EXPECT_THROW(batch_padding(lengths, 0), Error);
  EXPECT_THROW(batch_padding(std::vector<std::int64_t>{-1}, 1), Error);
  EXPECT_THROW(batch_padding(std::vector<std::int64_t>{INT64_MAX, 1}, 1), Overflow);
}

// Oracle: the best of all orders, the short batch at any place.
TEST(BatchPadding, GroupingIsOptimal) {
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{7, 1, 9, 3, 3, 8, 2}, {5, 5, 5, 1}, {100, 1, 2, 3, 4}, {4, 9, 1, 30, 31, 2}})
    for (std::int64_t batch = 1; batch <= 4; ++batch) {
      auto order = lengths;
      std::sort(order.begin(), order.end());
      std::int64_t best = INT64_MAX;
      do best = std::min(best, padded_tokens(order, batch));
      while (std::next_permutation(order.begin(), order.end()));
      EXPECT_EQ(batch_padding(lengths, batch).grouped, best);
    }
}

}  // namespace
}  // namespace vlmest::image_processor_padding_test
