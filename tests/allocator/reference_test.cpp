// SPDX-License-Identifier: Apache-2.0
// The allocator against a slow one (slow_allocator.hpp): the same random life under random settings, every block
// compared.
#include <gtest/gtest.h>

#include <vlmest/allocator/caching_allocator.hpp>

#include "life.hpp"
#include "slow_allocator.hpp"

namespace vlmest::reference_test {
namespace {
using namespace allocator;
using life::Step;

class Reference : public testing::TestWithParam<int> {};

TEST_P(Reference, SameAfterEveryStep) {
  life::Life life(static_cast<std::uint64_t>(GetParam()));
  CachingAllocator fast(life.config);
  slow::Allocator slow;
  slow.c = life.config;
  std::vector<std::pair<Block, std::int64_t>> live;  // block, address
  for (int i = 0; i < 2500; ++i) {
    SCOPED_TRACE(i);
    const auto s = life.step(live.size());
    if (s.kind == Step::empty_cache) {
      fast.empty_cache();
      slow.release_all();
    } else if (s.kind == Step::synchronize) {
      fast.synchronize(s.stream);
      slow.synchronize(s.stream);
    } else if (s.kind == Step::record_stream) {
      fast.record_stream(live[s.which].first, s.stream);
      slow.record_stream(live[s.which].second, s.stream);
    } else if (s.kind == Step::free) {
      fast.free(live[s.which].first);
      slow.free(live[s.which].second);
      live[s.which] = live.back();
      live.pop_back();
    } else {
      const auto block = fast.try_alloc(Bytes(s.bytes), s.stream);
      const auto address = slow.malloc(s.bytes, s.stream);
      ASSERT_EQ(block.has_value(), address.has_value());
      if (block) {
        ASSERT_EQ(fast.address(*block), *address);
        ASSERT_EQ(fast.block_size(*block), Bytes(slow.find(*address)->size));
        live.emplace_back(*block, *address);
      }
    }
    ASSERT_EQ(fast.allocated(), Bytes(slow.allocated));
    ASSERT_EQ(fast.reserved(), Bytes(slow.reserved));
    ASSERT_EQ(fast.peak_allocated(), Bytes(slow.peak_allocated));
    ASSERT_EQ(fast.peak_reserved(), Bytes(slow.peak_reserved));
    if (i % 50 == 0) {
      ASSERT_EQ(fast.segments(), slow.dump());
      const auto f = fast.fragmentation();
      ASSERT_EQ(f.releasable, Bytes(slow.releasable()));
      ASSERT_EQ(f.reserved, fast.active() + f.releasable + f.split);
      Bytes largest{};
      for (const auto& segment : fast.segments())
        for (const auto& b : segment.blocks)
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
}  // namespace vlmest::reference_test
