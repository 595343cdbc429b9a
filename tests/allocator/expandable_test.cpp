// SPDX-License-Identifier: Apache-2.0
// Cases of expandable segments worked by hand from c10/cuda/CUDACachingAllocator.cpp.
#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

namespace vlmest::expandable_test {
namespace {
using namespace allocator;
using namespace literals;

AllocatorConfig expandable() { return {.total_memory = 80_GiB, .expandable_segments = true}; }

// A 4096 x 5504 bf16 weight needs 43 MiB: three pages of 20 MiB are mapped, and all that is left over stays usable,
// where a segment of its own would have kept 1 MiB unsplit.
TEST(Expandable, MapsPagesAndSplitsExactly) {
  CachingAllocator a(expandable());
  const auto w = a.alloc(45_MiB - 512_B);
  EXPECT_EQ(a.block_size(w), 45_MiB - 512_B);
  EXPECT_EQ(a.reserved(), 60_MiB);
  const auto next = a.alloc(15_MiB + 512_B);
  EXPECT_EQ(a.address(next), a.address(w) + (45 << 20) - 512);
  EXPECT_EQ(a.reserved(), 60_MiB) << "it fits to the byte";
  a.alloc(1_B);
  EXPECT_EQ(a.reserved(), 62_MiB) << "the small pool has a range of its own and pages of 2 MiB";
  EXPECT_EQ(a.segments().size(), 2u);
  EXPECT_TRUE(a.segments()[0].expandable);
}

TEST(Expandable, GrowsBehindItsFreeTail) {
  CachingAllocator a(expandable());
  const auto x = a.alloc(30_MiB);  // 10 of the 40 MiB are free
  const auto y = a.alloc(25_MiB);  // 15 more are needed: one page
  EXPECT_EQ(a.address(y), a.address(x) + (30 << 20));
  EXPECT_EQ(a.reserved(), 60_MiB);
  ASSERT_EQ(a.segments().size(), 1u) << "one stretch of pages is one segment";
  EXPECT_EQ(a.segments()[0].blocks.size(), 3u);
}

// get_free_block: the free tail counts as large as it can become, so a hole that is larger than the tail is preferred.
TEST(Expandable, PrefersAHoleToTheTailThatCanGrow) {
  CachingAllocator a(expandable());
  const auto hole = a.alloc(18_MiB);
  const auto fence = a.alloc(10_MiB);
  a.free(hole);
  EXPECT_EQ(a.reserved(), 40_MiB);  // 18 free, 10 live, 12 free at the end
  const auto in_hole = a.alloc(11_MiB);
  EXPECT_LT(a.address(in_hole), a.address(fence)) << "12 would be the best fit, were it not for the room behind it";
}

TEST(Expandable, GivesBackWholePagesInsideABlock) {
  CachingAllocator a(expandable());
  const auto x = a.alloc(5_MiB), y = a.alloc(70_MiB), z = a.alloc(5_MiB);
  EXPECT_EQ(a.reserved(), 80_MiB);
  a.free(y);  // free from 5 to 75: pages 20 to 60 are whole
  EXPECT_EQ(a.fragmentation().releasable, 40_MiB);
  EXPECT_EQ(a.fragmentation().split, 30_MiB);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 40_MiB);
  const auto s = a.segments();
  ASSERT_EQ(s.size(), 2u) << "two stretches of pages in one range";
  EXPECT_EQ(s[1].address, s[0].address + (60 << 20));
  const auto w = a.alloc(16_MiB);  // the gap is filled from its lower end: 15 MiB and one page
  EXPECT_EQ(a.address(w), s[0].address + (5 << 20));
  EXPECT_EQ(a.reserved(), 60_MiB);
  a.free(x), a.free(z), a.free(w);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 0_B);
}

TEST(Expandable, KeepsWhatWasMappedBeforeMemoryRanShort) {
  auto c = expandable();
  c.capacity = 100_MiB;
  CachingAllocator a(c);
  const auto x = a.alloc(50_MiB);
  EXPECT_FALSE(a.try_alloc(70_MiB).has_value());
  EXPECT_EQ(a.reserved(), 60_MiB) << "10 MiB are left in the last page";
  a.free(x);
  EXPECT_EQ(a.block_size(a.alloc(100_MiB)), 100_MiB) << "no fragmentation stands in the way";
}

// The limit of set_per_process_memory_fraction is held against the request, memory is mapped in pages: it can be
// passed.
TEST(Expandable, AFractionIsHeldAgainstTheRequest) {
  auto c = expandable();
  c.memory_fraction = 0.5;
  c.total_memory = 64_MiB;
  CachingAllocator a(c);
  a.alloc(22_MiB);
  EXPECT_EQ(a.reserved(), 40_MiB);
  EXPECT_FALSE(a.try_alloc(2_B).has_value()) << "2 MiB more than 32 are not allowed";
}

TEST(Expandable, ANewRangeBeginsWhereOneIsFull) {
  auto c = expandable();
  c.total_memory = 80_MiB;  // ranges of 100 MiB
  CachingAllocator a(c);
  const auto x = a.alloc(95_MiB), y = a.alloc(10_MiB);
  EXPECT_EQ(a.reserved(), 120_MiB);
  EXPECT_EQ(a.address(y), a.address(x) + (100 << 20));
  EXPECT_EQ(a.segments().size(), 2u);
}
}  // namespace
}  // namespace vlmest::expandable_test
