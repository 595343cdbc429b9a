// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

namespace vlmest::streams_test {
namespace {
using namespace allocator;
using namespace literals;

constexpr Stream side = 94'000'000'000'000;

TEST(Streams, DoNotShareBlocks) {
  CachingAllocator a;
  a.free(a.alloc(30_MiB));
  const auto other = a.alloc(30_MiB, side);
  EXPECT_EQ(a.reserved(), 60_MiB) << "what one stream freed serves no other";
  a.free(other);
  EXPECT_EQ(a.address(a.alloc(30_MiB, side)), 30 << 20);
  EXPECT_EQ(a.reserved(), 60_MiB);
  const auto s = a.segments();
  ASSERT_EQ(s.size(), 2u);
  EXPECT_EQ(s[0].stream, 0);
  EXPECT_EQ(s[1].stream, side);
}

TEST(Streams, AnExpandableRangeEach) {
  CachingAllocator a({.expandable_segments = true});
  a.alloc(10_MiB);
  a.alloc(10_MiB, side);
  EXPECT_EQ(a.reserved(), 40_MiB);
  EXPECT_EQ(a.segments().size(), 2u);
}

TEST(Streams, ARecordedBlockWaitsForItsUsers) {
  CachingAllocator a;
  const auto x = a.alloc(30_MiB);
  const auto at = a.address(x);
  a.record_stream(x, side);
  a.record_stream(x, 7);
  a.record_stream(x, 0);  // its own stream needs no waiting
  a.free(x);
  EXPECT_EQ(a.allocated(), 0_B);
  EXPECT_EQ(a.active(), 30_MiB);
  EXPECT_EQ(a.segments()[0].blocks[0].state, BlockState::awaiting);
  EXPECT_NE(a.address(a.alloc(30_MiB)), at) << "another stream may still read it";
  a.synchronize(side);
  EXPECT_EQ(a.active(), 60_MiB) << "stream 7 is still at work";
  a.synchronize(7);
  EXPECT_EQ(a.active(), 30_MiB);
  EXPECT_EQ(a.address(a.alloc(30_MiB)), at);
}

TEST(Streams, MemoryIsWaitedForWhereItIsShort) {
  CachingAllocator a({.capacity = 64_MiB});
  const auto x = a.alloc(30_MiB);
  a.record_stream(x, side);
  a.free(x);
  EXPECT_TRUE(a.try_alloc(40_MiB, side).has_value()) << "all streams are synchronised, and the segment is given back";
  EXPECT_EQ(a.reserved(), 40_MiB);
  EXPECT_EQ(a.active(), 40_MiB);
}

TEST(Streams, FreesHaveTwoHalves) {
  CachingAllocator a;
  const auto x = a.alloc(1_MiB);
  EXPECT_THROW(a.complete_free(x), Error);
  a.request_free(x);
  EXPECT_EQ(a.allocated(), 0_B);
  EXPECT_EQ(a.active(), 1_MiB);
  EXPECT_THROW(a.free(x), Error);
  a.complete_free(x);
  EXPECT_EQ(a.active(), 0_B);
  EXPECT_THROW(a.complete_free(x), Error);
}
}  // namespace
}  // namespace vlmest::streams_test
