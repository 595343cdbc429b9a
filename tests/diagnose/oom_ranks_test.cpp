// SPDX-License-Identifier: Apache-2.0
// Several ranks of one run that ran out of memory.
#include <string>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/oom/ranks.hpp>
#include <vlmest/diagnose/evidence/oom/reader.hpp>

namespace vlmest::diagnose::oom_ranks_test {
namespace {

/// A line of torch 2.5 and later.
std::string message(int rank, const char* asked, const char* held) {
  const std::string r = std::to_string(rank);
  return "[rank" + r + "]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate " + asked + ". GPU " + r +
         " has a total capacity of 79.11 GiB of which 1.32 GiB is free. Process 12" + r +
         " has 77.78 GiB memory in use. Of the allocated memory " + held +
         " is allocated by PyTorch, and 1.91 GiB is reserved by PyTorch but unallocated.\n";
}
std::vector<RankFailure> ranks(const std::string& text) { return failed_ranks(find_oom_messages(text)); }
bool says(const std::string& text, const char* what) {
  const auto all = ranks(text);
  return !all.empty() && in_words(all).find(what) != std::string::npos;
}

TEST(OomRanks, TheFirstIsNamedAndWhoHeldMore) {
  const std::string text = message(3, "6.75 GiB", "70.11 GiB") + message(1, "1.75 GiB", "75.11 GiB");
  const auto all = ranks(text);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].rank, 3);
  EXPECT_EQ(all[1].gpu, 1);
  EXPECT_TRUE(says(text, "first rank 3 asked for 6.75 GiB over 70.11 GiB")) << in_words(all);
  EXPECT_TRUE(says(text, "rank 1 held 5.00 GiB more than rank 3")) << in_words(all);
}

TEST(OomRanks, AlikeOnesAreNoMatterOfABatch) {
  const std::string text = message(0, "1.02 GiB", "75.11 GiB") + message(1, "1.02 GiB", "75.12 GiB");
  EXPECT_TRUE(says(text, "what every rank keeps is too large"));
}

TEST(OomRanks, EchoesAndASingleRankAreNone) {
  EXPECT_TRUE(ranks(message(0, "1.02 GiB", "75.11 GiB") + message(0, "1.02 GiB", "75.11 GiB")).empty());
  EXPECT_TRUE(
      ranks("[rank1]: RuntimeError: CUDA error: out of memory\n" + message(0, "1.02 GiB", "75.11 GiB")).empty());
  std::string eight;
  for (int r = 0; r < 8; ++r) eight += message(r, "1.02 GiB", "70.00 GiB");
  EXPECT_TRUE(says(eight, "8 ranks ran out of memory"));
  EXPECT_TRUE(says(eight, ", 4 more"));
}

}  // namespace
}  // namespace vlmest::diagnose::oom_ranks_test
