// SPDX-License-Identifier: Apache-2.0
// Whether a stretch of requests would get the same blocks once more: where it says so they do, and where a segment that
// was opened late would be taken early it does not say so.
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

namespace vlmest::choices_test {
namespace {
using namespace allocator;
using namespace literals;

/// A request by its bytes, or the end of one by its number.
struct Call {
  Bytes bytes{};
  std::size_t frees = 0;
};

/// Makes the calls and gives back what they leave. Where their blocks lay.
std::vector<std::int64_t> round_of(CachingAllocator& a, const std::vector<Call>& calls) {
  std::vector<Block> blocks;
  std::vector<std::int64_t> places;
  for (const Call& c : calls) {
    if (c.bytes == Bytes{}) {
      a.free(std::exchange(blocks[c.frees], {}));
      continue;
    }
    blocks.push_back(a.alloc(c.bytes));
    places.push_back(a.address(blocks.back()));
  }
  for (const Block b : blocks) a.free(b);
  return places;
}

/// Two rounds: whether the first says that the second is equal, and whether it is.
struct Rounds {
  bool said = false, equal = false;
};
Rounds two_rounds(CachingAllocator& a, const std::vector<Call>& calls) {
  Rounds r;
  a.note_choices();
  const auto first = round_of(a, calls);
  r.said = a.would_choose_again();
  const auto opened = a.growths();
  r.equal = round_of(a, calls) == first && a.growths() == opened;
  return r;
}

TEST(Choices, AreTheSameWhereLaterSegmentsAreLarger) {
  CachingAllocator a;
  const Rounds r = two_rounds(a, {{24_MiB}, {{}, 0}, {32_MiB}, {48_MiB}});
  EXPECT_TRUE(r.said);
  EXPECT_TRUE(r.equal);
}

TEST(Choices, DifferWhereALaterSegmentFitsBetter) {
  CachingAllocator a;
  a.free(a.alloc(100_MiB));
  // The first request is cut from 100 MiB, which leaves too little for the second; that one's segment then serves the
  // first.
  const Rounds r = two_rounds(a, {{30_MiB}, {72_MiB}});
  EXPECT_FALSE(r.said);
  EXPECT_FALSE(r.equal);
}

TEST(Choices, AreNotKnownWhereMemoryWasGivenBack) {
  CachingAllocator a;
  a.free(a.alloc(24_MiB));
  a.note_choices();
  a.empty_cache();
  a.free(a.alloc(24_MiB));
  EXPECT_FALSE(a.would_choose_again());
}

TEST(Choices, AreNotKnownWhereLimitsForceMemoryBack) {
  CachingAllocator a({.capacity = 100_MiB});
  a.free(a.alloc(60_MiB));
  a.note_choices();
  a.free(a.alloc(80_MiB));  // the 60 MiB go
  EXPECT_FALSE(a.would_choose_again());
}

/// Of random rounds those that are said to be equal are, also where they opened segments.
TEST(Choices, AreTheSameWhereverTheySaySo) {
  std::mt19937 random(1);
  const auto up_to = [&](std::size_t n) { return static_cast<std::int64_t>(random() % n); };
  int said = 0, opened = 0, different = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    CachingAllocator a;
    std::vector<Block> lasting;
    for (auto n = up_to(8); n > 0; --n) {
      const Block there = a.alloc(Bytes((1 + up_to(24)) << 21));
      if (up_to(2) == 0)
        lasting.push_back(there);
      else
        a.free(there);
    }
    std::vector<Call> calls;
    std::vector<std::size_t> live;
    std::size_t made = 0;
    for (auto n = 4 + up_to(40); n > 0; --n) {
      if (!live.empty() && up_to(2) == 0) {
        const auto at = live.begin() + up_to(live.size());
        calls.push_back({{}, *at});
        live.erase(at);
      } else {
        calls.push_back({Bytes((1 + up_to(40)) << (up_to(2) == 0 ? 20 : 14))});
        live.push_back(made++);
      }
    }
    const auto growths = a.growths();
    const Rounds r = two_rounds(a, calls);
    ASSERT_TRUE(!r.said || r.equal) << trial;
    said += r.said;
    opened += r.said && a.growths() > growths;
    different += !r.equal;
  }
  EXPECT_GT(said, 100);
  EXPECT_GT(opened, 100);
  EXPECT_GT(different, 100);
}

}  // namespace
}  // namespace vlmest::choices_test
