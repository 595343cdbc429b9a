// SPDX-License-Identifier: Apache-2.0
#include <bench/harness/statistics.hpp>
#include <gtest/gtest.h>

namespace vlmest::bench::statistics_test {
namespace {

TEST(Statistics, OfKnownSamples) {
  const std::vector<double> odd{5, 1, 4, 2, 3};
  const Statistics s = statistics(odd);
  EXPECT_DOUBLE_EQ(s.median, 3);
  EXPECT_DOUBLE_EQ(s.mean, 3);
  EXPECT_NEAR(s.deviation, std::sqrt(2.5) / 3, 1e-15);
  EXPECT_DOUBLE_EQ(statistics(std::vector<double>{1, 2, 3, 100}).median, 2.5);
}

TEST(Statistics, NeverNan) {
  EXPECT_EQ(statistics({}).median, 0);
  EXPECT_EQ(statistics(std::vector<double>{7}).deviation, 0);
  EXPECT_EQ(statistics(std::vector<double>{0, 0}).deviation, 0);
}

TEST(StopRule, WaitsForTheLeastAndEndsAtTheMost) {
  const StopRule rule{.least = 3, .most = 6, .bound = 0.01, .budget = {1}};
  std::vector<double> same{2, 2};
  EXPECT_FALSE(enough(same, {100}, rule)) << "too few, though they agree and the budget is spent";
  same.push_back(2);
  EXPECT_TRUE(enough(same, {}, rule));
  std::vector<double> noisy{1, 2, 1, 2, 1};
  EXPECT_FALSE(enough(noisy, {0.9}, rule));
  EXPECT_TRUE(enough(noisy, {1}, rule)) << "the budget is spent";
  noisy.push_back(2);
  EXPECT_TRUE(enough(noisy, {}, rule)) << "as many as there may be";
}

TEST(StopRule, BoundIsThatOfTheMean) {
  // Deviation 2 %: the mean of 4 samples is known to 1 %, that of 16 to 0.5 %.
  const StopRule rule{.least = 2, .most = 1000, .bound = 0.006, .budget = {1}};
  std::vector<double> samples;
  const auto add = [&](int n) {
    for (int i = 0; i < n; ++i) samples.push_back(samples.size() % 2 == 0 ? 0.98 : 1.02);
  };
  add(4);
  EXPECT_FALSE(enough(samples, {}, rule));
  add(12);
  EXPECT_TRUE(enough(samples, {}, rule));
}

TEST(Samples, LastAtLeastTheirShortest) {
  EXPECT_EQ(calls_per_sample({2.5e-6}, 256), 80);
  EXPECT_EQ(calls_per_sample({0.1e-6}, 256), 256);
  EXPECT_EQ(calls_per_sample({199e-6}, 256), 2);
  EXPECT_EQ(calls_per_sample({1e-3}, 256), 1);
  EXPECT_EQ(calls_per_sample({0}, 256), 256);
}

TEST(Samples, SetsBetweenTwoUsesHoldFiveCaches) {
  const Bytes cache(60 << 20);
  for (const std::int64_t one :
       {std::int64_t{4096}, std::int64_t{1} << 20, std::int64_t{60} << 20, std::int64_t{1} << 33}) {
    const std::int64_t sets = rotating_sets(Bytes(one), cache);
    EXPECT_GE((sets - 1) * one, 5 * cache.value());
    EXPECT_LT((sets - 2) * one, 5 * cache.value());
  }
  EXPECT_EQ(rotating_sets(Bytes{}, cache), 1);
}

}  // namespace
}  // namespace vlmest::bench::statistics_test
