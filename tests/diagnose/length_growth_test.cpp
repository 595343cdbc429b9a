// SPDX-License-Identifier: Apache-2.0
// Memory that somebody measured at lengths that double.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/verdict/judge_length_growth.hpp>

namespace vlmest::diagnose::length_growth_test {
namespace {

/// Megatron's lines behind the command of each run.
std::string runs(std::initializer_list<std::pair<int, double>> measured) {
  std::string s;
  for (const auto& [length, mb] : measured)
    s += "train.sh " + std::to_string(length) +
         "\nmemory (MB) | allocated: 1000.0 | max allocated: " + std::to_string(mb) + "\n";
  return s;
}

std::optional<Verdict> judged(const std::string& text) {
  const auto g = find_length_growth(text, read_memory_log(text).rows);
  return g ? judge_length_growth(*g) : std::nullopt;
}

TEST(LengthGrowth, OfTheSquareIsOfScores) {
  // 1000 + 3000 (n / 4096) + 2000 (n / 4096)^2
  const auto v = judged(runs({{4096, 6000}, {8192, 15000}, {16384, 45000}, {32768, 153000}}));
  ASSERT_TRUE(v);
  EXPECT_EQ(v->cause, Cause::attention_scores);
  EXPECT_NE(v->why.find("at 16384"), std::string::npos) << v->why;
}

TEST(LengthGrowth, OfTheLengthIsNot) {
  EXPECT_FALSE(judged(runs({{4096, 6000}, {8192, 11000}, {16384, 21000}})));
  EXPECT_TRUE(find_length_growth(runs({{4096, 6000}, {8192, 11000}, {16384, 21000}}),
                                 read_memory_log(runs({{4096, 6000}, {8192, 11000}, {16384, 21000}})).rows));
}

TEST(LengthGrowth, WhatIsNoSuchTable) {
  EXPECT_FALSE(judged(runs({{4096, 6000}, {8192, 15000}})));                 // two tell no power
  EXPECT_FALSE(judged(runs({{4096, 6000}, {4096, 15000}, {4096, 45000}})));  // no length that doubles
  EXPECT_FALSE(judged(runs({{4096, 6000}, {8192, 5000}, {16384, 45000}})));  // memory that falls
  EXPECT_FALSE(judged(runs({{4096, 6000}, {8192, 15000}, {12288, 45000}})));
  EXPECT_FALSE(judged(""));
}

}  // namespace
}  // namespace vlmest::diagnose::length_growth_test
