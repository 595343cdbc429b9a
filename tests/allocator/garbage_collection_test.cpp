// SPDX-License-Identifier: Apache-2.0
// garbage_collect_cached_blocks in c10/cuda/CUDACachingAllocator.cpp, worked by hand.
#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

namespace vlmest::garbage_collection_test {
namespace {
using namespace allocator;
using namespace literals;

AllocatorConfig collecting() {
  return {.total_memory = 200_MiB, .memory_fraction = 0.5, .garbage_collection_threshold = 0.8};  // 100 and 80 MiB
}

TEST(GarbageCollection, GivesOldSegmentsBack) {
  CachingAllocator a(collecting());
  const auto x = a.alloc(30_MiB), y = a.alloc(40_MiB), z = a.alloc(12_MiB);  // searches 1 to 3
  a.free(x);                                                                 // cached at 3
  a.free(a.alloc(13_MiB));  // search 4 takes the 30 MiB, which are cached again at 4
  a.free(y);                // cached at 4
  a.alloc(1_MiB);           // a search of the small pool, whose new segment finds 82 MiB reserved
  EXPECT_EQ(a.reserved(), 14_MiB) << "two blocks of age 0: none is younger than the average, so all of them go";
  a.free(z);
}

TEST(GarbageCollection, SparesTheYoung) {
  CachingAllocator a(collecting());
  const auto x = a.alloc(20_MiB), y = a.alloc(30_MiB), z = a.alloc(12_MiB), w = a.alloc(20_MiB);  // searches 1 to 4
  a.free(x);                                                                                      // cached at 4
  a.free(z);
  a.alloc(11_MiB);  // search 5 takes the 12 MiB again
  a.free(y);        // cached at 5
  a.alloc(31_MiB);  // search 6 finds ages 2 and 1: the 20 MiB go, and 2 MiB were wanted
  EXPECT_EQ(a.reserved(), 94_MiB) << "30, 12, 20 and the new 32";
  a.free(w);
}

TEST(GarbageCollection, NeedsAMemoryFraction) {
  auto c = collecting();
  c.memory_fraction = 1;
  CachingAllocator a(c);
  a.free(a.alloc(90_MiB));
  a.alloc(100_MiB);
  EXPECT_EQ(a.reserved(), 190_MiB) << "as in torch, nothing happens without set_per_process_memory_fraction";
}

TEST(GarbageCollection, LeavesSplitAndSmallSegments) {
  CachingAllocator a(collecting());
  const auto x = a.alloc(80_MiB), y = a.alloc(5_MiB);  // 100 MiB
  a.free(x);
  a.free(a.alloc(70_MiB));  // taken from the cache and back: still whole
  const auto part = a.alloc(60_MiB);
  EXPECT_FALSE(a.try_alloc(30_MiB).has_value()) << "20 MiB beside the 60 and 15 beside the 5 are no whole segments";
  a.free(part), a.free(y);
}

TEST(MemoryFraction, LimitsWhatIsReserved) {
  CachingAllocator a({.total_memory = 100_MiB, .memory_fraction = 0.31});
  a.alloc(30_MiB);
  EXPECT_FALSE(a.try_alloc(1_B).has_value()) << "another 2 MiB are beyond 31";
  EXPECT_TRUE(CachingAllocator({.total_memory = 100_MiB, .memory_fraction = 0.32}).try_alloc(32_MiB).has_value());
}

TEST(Fragmentation, SaysHowReservedMemoryIsSpent) {
  CachingAllocator a;
  EXPECT_EQ(a.fragmentation(), Fragmentation{});
  const auto x = a.alloc(3_MiB);
  a.free(a.alloc(40_MiB));
  const auto y = a.alloc(5_MiB);
  a.free(x);  // 3 free, 5 live, 12 free; and 40 in one piece
  EXPECT_EQ(a.fragmentation(), (Fragmentation{60_MiB, 40_MiB, 15_MiB, 40_MiB}));
  a.empty_cache();
  EXPECT_EQ(a.fragmentation(), (Fragmentation{20_MiB, 0_B, 15_MiB, 12_MiB}));
  a.free(y);
  EXPECT_EQ(a.fragmentation(), (Fragmentation{20_MiB, 20_MiB, 0_B, 20_MiB}));
}
}  // namespace
}  // namespace vlmest::garbage_collection_test
