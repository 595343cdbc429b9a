// SPDX-License-Identifier: Apache-2.0
// The program that shows where a graph and a trace differ, on a trace that its model explains and on another sequence.
#include <gtest/gtest.h>

#define main vlmest_trace_diff
#include "trace_diff.cpp"
#undef main

namespace conformance::trace_diff_test {
namespace {

/// What the program ends with for the prefill of two sequences of LLaVA-1.5 with two images and so many tokens of text.
int ends_with(const char* text) {
  const std::string data = VLMEST_SOURCE_DIR "/tests/data/";
  std::vector<std::string> words{"trace_diff", data + "configs/llava-1.5-7b.json",
                                 data + "traces/llava-1.5-7b.b2.tsv.gz"};
  for (const char* word : {"--batch", "2", "--images", "2", "--layers", "2", "--text", text}) words.emplace_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return vlmest_trace_diff(static_cast<int>(arguments.size()), arguments.data());
}

TEST(TraceDiff, EndsWithoutAndWithDifferences) {
  EXPECT_EQ(ends_with("100"), 0);
  EXPECT_EQ(ends_with("101"), 1);
}

}  // namespace
}  // namespace conformance::trace_diff_test
