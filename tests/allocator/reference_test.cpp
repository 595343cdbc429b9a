// SPDX-License-Identifier: Apache-2.0
// The allocator against a slow one (slow_allocator.hpp): the same random life under random settings, every block
// compared.
#include <random>

#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

#include "slow_allocator.hpp"

namespace {
using namespace vlmest;
using namespace vlmest::allocator;
using slow::Int;
using slow::mib;

struct Life {
  std::mt19937_64 random;
  AllocatorConfig config;
  int streams = 1;
  double small_share = 0.5;
  Int live = 60;

  Int uniform(Int lo, Int hi) { return std::uniform_int_distribution<Int>(lo, hi)(random); }
  bool chance(int percent) { return uniform(0, 99) < percent; }

  explicit Life(std::uint64_t seed) : random(seed) {
    config.expandable_segments = chance(45);
    config.total_memory = Bytes(uniform(500, 1500) * mib + uniform(0, 1) * 4096);
    if (chance(60)) config.capacity = Bytes(uniform(300, 900) * mib);
    if (chance(50)) config.memory_fraction = static_cast<double>(uniform(20, 99)) / 100;
    if (chance(60)) config.garbage_collection_threshold = static_cast<double>(uniform(10, 95)) / 100;
    if (chance(25)) config.large_segment_size = Bytes(uniform(6, 20) * 2 * mib);
    config.max_non_split_rounding = config.large_segment_size;
    if (chance(45)) config.max_split_size = config.large_segment_size + Bytes(uniform(0, 60) * mib);
    if (chance(25)) config.max_non_split_rounding += Bytes(uniform(0, 40) * mib);
    if (chance(30))
      for (auto& d : config.roundup_power2_divisions) d = chance(30) ? 0 : 1 << uniform(0, 5);
    streams = static_cast<int>(uniform(1, 4));
    small_share = static_cast<double>(uniform(5, 95)) / 100;
    live = uniform(20, 150);
  }
};

class Reference : public testing::TestWithParam<int> {};

TEST_P(Reference, SameAfterEveryEvent) {
  Life life(static_cast<std::uint64_t>(GetParam()));
  const auto uniform = [&](Int lo, Int hi) { return life.uniform(lo, hi); };
  const Stream handles[] = {0, 94'000'000'000'000, 123'323'568, -8};
  // A few sizes come again and again, as in a network, so that cached blocks of equal size meet.
  std::vector<Int> usual;
  for (int i = 0; i < 12; ++i) usual.push_back(Int{1} << uniform(4, 26));
  CachingAllocator fast(life.config);
  slow::Allocator slow;
  slow.c = life.config;
  std::vector<std::pair<Block, Int>> live;  // block, address
  for (int event = 0; event < 2500; ++event) {
    SCOPED_TRACE(event);
    const auto k = live.empty() ? 0 : static_cast<std::size_t>(uniform(0, static_cast<Int>(live.size()) - 1));
    const auto stream = handles[uniform(0, life.streams - 1)];
    const auto kind = uniform(0, 999);
    if (kind < 3) {
      fast.empty_cache();
      slow.release_all();
    } else if (kind < 30) {
      fast.synchronize(stream);
      slow.synchronize(stream);
    } else if (kind < 90 && !live.empty()) {
      fast.record_stream(live[k].first, stream);
      slow.record_stream(live[k].second, stream);
    } else if (!live.empty() && static_cast<Int>(live.size()) > uniform(0, 2 * life.live)) {
      fast.free(live[k].first);
      slow.free(live[k].second);
      live[k] = live.back();
      live.pop_back();
    } else {
      const bool small = uniform(0, 999) < static_cast<Int>(1000 * life.small_share);
      const auto bytes = uniform(0, 2) == 0 ? usual[static_cast<std::size_t>(uniform(0, 11))]
                         : small            ? uniform(1, uniform(0, 1) ? 20'000 : mib + 700)
                                            : uniform(mib - 1000, uniform(0, 1) ? 12 * mib : 90 * mib);
      const auto f = fast.try_alloc(Bytes(bytes), stream);
      const auto s = slow.malloc(bytes, stream);
      ASSERT_EQ(f.has_value(), s.has_value());
      if (s) {
        ASSERT_EQ(fast.address(*f), *s);
        ASSERT_EQ(fast.block_size(*f), Bytes(slow.find(*s)->size));
        live.emplace_back(*f, *s);
      }
    }
    ASSERT_EQ(fast.allocated(), Bytes(slow.allocated));
    ASSERT_EQ(fast.reserved(), Bytes(slow.reserved));
    ASSERT_EQ(fast.peak_allocated(), Bytes(slow.peak_allocated));
    ASSERT_EQ(fast.peak_reserved(), Bytes(slow.peak_reserved));
    if (event % 50 == 0) {
      ASSERT_EQ(fast.segments(), slow.dump());
      const auto f = fast.fragmentation();
      ASSERT_EQ(f.releasable, Bytes(slow.releasable()));
      ASSERT_EQ(f.reserved, fast.active() + f.releasable + f.split);
      Bytes largest{};
      for (const auto& s : fast.segments())
        for (const auto& b : s.blocks)
          if (!b.active()) largest = std::max(largest, b.size);
      ASSERT_EQ(f.largest_free, largest);
    }
  }
  for (const auto& [block, address] : live) fast.free(block);
  fast.empty_cache();
  EXPECT_EQ(fast.reserved(), Bytes(0));
  EXPECT_TRUE(fast.segments().empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, Reference, testing::Range(1, 41));
}  // namespace
