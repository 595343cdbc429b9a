// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::sort_stably_test {
namespace {

TEST(SortStably, IsStdStableSort) {
  std::mt19937 random(7);
  for (std::size_t size = 0; size < 200; ++size) {
    std::vector<std::pair<std::uint32_t, std::size_t>> expected;
    for (std::size_t i = 0; i < size; ++i) expected.emplace_back(random() % 8, i);
    auto sorted = expected;
    const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::stable_sort(expected.begin(), expected.end(), earlier);
    sort_stably(sorted, earlier);
    EXPECT_EQ(sorted, expected) << size;
  }
}

TEST(SortStably, MovesWhatCannotBeCopied) {
  std::vector<std::unique_ptr<int>> all;
  for (const int i : {3, 1, 2, 0}) all.push_back(std::make_unique<int>(i));
  sort_stably(all, [](const auto& a, const auto& b) { return *a < *b; });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(*all[static_cast<std::size_t>(i)], i);
}

}  // namespace
}  // namespace vlmest::sort_stably_test
