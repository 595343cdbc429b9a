// SPDX-License-Identifier: Apache-2.0
// Rows that were measured several times, ranges, and what was fitted.
#include <gtest/gtest.h>

#include <vlmest/report/comparison.hpp>

namespace vlmest::comparison_rows_test {
namespace {

TEST(ComparisonRows, MeasuredTwiceCountsOnce) {
  const std::vector<Comparison> all{
      {.row = "a", .quantity = "q", .predicted = 110, .measured = 100},
      {.row = "a", .quantity = "q", .predicted = 110, .measured = 88},   // 25 % off
      {.row = "a", .quantity = "q", .predicted = 104, .measured = 100},  // predicted otherwise: another one
      {.row = "b", .quantity = "q", .predicted = 101, .measured = 100}};
  const ErrorSummary s = summary(all, "q");
  EXPECT_EQ(s.rows, 3u);
  EXPECT_EQ(s.measurements, 4u);
  EXPECT_NEAR(s.mean, (17.5 + 4 + 1) / 3, 1e-9);
  EXPECT_NEAR(s.median, 4, 1e-9);
  EXPECT_NEAR(s.worst, 25, 1e-9);
  EXPECT_NEAR(share_within(all, "q", 10.5), 200.0 / 3, 1e-9);
}

TEST(ComparisonRows, Coverage) {
  const auto one = [](double measured) {
    return Comparison{.row = "a", .quantity = "q", .predicted = 100, .measured = measured, .range = Range{80, 130}};
  };
  std::vector<Comparison> all{one(79.9), one(80), one(130), one(131)};
  all.push_back({.row = "b", .quantity = "q", .predicted = 100, .measured = 100});
  const ErrorSummary s = summary(all, "q");
  EXPECT_EQ(s.ranged, 4u);
  EXPECT_EQ(s.in_range, 2u);
  EXPECT_DOUBLE_EQ(s.coverage(), 50);
  EXPECT_DOUBLE_EQ(summary(all, "none").coverage(), 0);
}

TEST(ComparisonRows, FittedTogether) {
  EXPECT_EQ(together(Fitted::no, Fitted::no), Fitted::no);
  EXPECT_EQ(together(Fitted::no, Fitted::yes), Fitted::partly);
  EXPECT_EQ(together(Fitted::partly, Fitted::yes), Fitted::partly);
  EXPECT_EQ(together(Fitted::no, Fitted::unknown), Fitted::unknown);
  const std::vector<Comparison> all{{.quantity = "q", .fitted = Fitted::no}, {.quantity = "q", .fitted = Fitted::yes}};
  EXPECT_EQ(summary(all, "q").fitted, Fitted::partly);
}

}  // namespace
}  // namespace vlmest::comparison_rows_test
