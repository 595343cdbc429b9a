// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/allocator/config.hpp>

namespace vlmest::config_test {
namespace {
using namespace allocator;

constexpr AllocatorConfig plain;

static_assert(round_size(plain, Bytes(1)) == Bytes(512));
static_assert(round_size(plain, Bytes(512)) == Bytes(512));
static_assert(round_size(plain, Bytes(513)) == Bytes(1024));
static_assert(segment_size(plain, Bytes(512)) == Bytes(2 << 20));
static_assert(segment_size(plain, Bytes(1 << 20)) == Bytes(2 << 20));
static_assert(segment_size(plain, Bytes((1 << 20) + 512)) == Bytes(20 << 20));
static_assert(segment_size(plain, Bytes((10 << 20) - 512)) == Bytes(20 << 20));
static_assert(segment_size(plain, Bytes(10 << 20)) == Bytes(10 << 20));
static_assert(segment_size(plain, Bytes(45'088'768)) == Bytes(46'137'344));

AllocatorConfig four_steps() {
  AllocatorConfig c;
  c.roundup_power2_divisions.fill(4);
  return c;
}

// torch's own example is 1200 with four steps between 1024 and 2048, which gives 1280; below 512 bytes a step plain
// rounding holds, so the same example is taken 1024 times as large.
TEST(RoundSize, RoundsToSteps) {
  const auto c = four_steps();
  EXPECT_EQ(round_size(c, Bytes(1200 << 10)), Bytes(1280 << 10));
  EXPECT_EQ(round_size(c, Bytes(1280 << 10)), Bytes(1280 << 10));
  EXPECT_EQ(round_size(c, Bytes(2000 << 10)), Bytes(2048 << 10));
  EXPECT_EQ(round_size(c, Bytes(2048 << 10)), Bytes(2048 << 10));
  EXPECT_EQ(round_size(c, Bytes(2048)), Bytes(2048));
  EXPECT_EQ(round_size(c, Bytes(2049)), Bytes(2560));
  EXPECT_EQ(round_size(c, Bytes(4097)), Bytes(5120));
}

// The intervals of torch's test of this option (test/cpp: AllocatorConfigTest): "[64:8,128:2,...]" means that 32 and 64
// MiB have 8, 128 MiB has 2.
TEST(RoundSize, PicksTheIntervalOfTheSize) {
  AllocatorConfig c;
  std::fill_n(c.roundup_power2_divisions.begin(), 7, 8);  // 1 MiB ... 64 MiB
  c.roundup_power2_divisions[7] = 2;                      // 128 MiB
  constexpr std::int64_t mib = 1 << 20;
  EXPECT_EQ(round_size(c, Bytes(65 * mib)), Bytes(72 * mib));
  EXPECT_EQ(round_size(c, Bytes(129 * mib)), Bytes(192 * mib));
  EXPECT_EQ(round_size(c, Bytes(256 * mib + 1)), Bytes(256 * mib + 512));
  EXPECT_EQ(round_size(c, Bytes(100'001)), Bytes(106'496)) << "sizes below 1 MiB use the first entry";
}

TEST(AllocatorConfigCheck, RefusesWhatTorchRefuses) {
  EXPECT_NO_THROW(check(plain));
  EXPECT_NO_THROW(check(four_steps()));
  EXPECT_NO_THROW(check({.max_split_size = Bytes(20 << 20)}));
  auto bad = [](auto change) {
    AllocatorConfig c;
    change(c);
    EXPECT_THROW(check(c), Error);
  };
  bad([](auto& c) { c.capacity = Bytes(-1); });
  bad([](auto& c) { c.total_memory = Bytes(-1); });
  bad([](auto& c) { c.memory_fraction = 0.5; });  // of an unknown memory
  bad([](auto& c) { c.memory_fraction = 1.5; });
  bad([](auto& c) { c.garbage_collection_threshold = 1; });
  bad([](auto& c) { c.max_split_size = Bytes((20 << 20) - 1); });
  bad([](auto& c) { c.max_non_split_rounding = Bytes(1 << 20); });
  bad([](auto& c) { c.large_segment_size = Bytes(10 << 20); });
  bad([](auto& c) { c.large_segment_size = Bytes((20 << 20) + 512); });
  bad([](auto& c) { c.large_segment_size = Bytes(13 << 20), c.expandable_segments = true; });
  bad([](auto& c) { c.roundup_power2_divisions[3] = 3; });
  bad([](auto& c) { c.roundup_power2_divisions[3] = -4; });
}

// c10/cuda/CUDACachingAllocator.cpp: fraction * totalGlobalMem is cut off, and 1 sets no limit at all.
TEST(AllowedMemory, IsAPartOfTheDevices) {
  EXPECT_EQ(allowed_memory({.total_memory = Bytes(1001), .memory_fraction = 0.5}), 500);
  EXPECT_EQ(allowed_memory({.total_memory = Bytes(1000)}), no_limit);
  const AllocatorConfig c{.total_memory = Bytes(1000), .memory_fraction = 0.5, .garbage_collection_threshold = 0.9};
  EXPECT_EQ(collection_limit(c), 450);
  EXPECT_EQ(collection_limit({.total_memory = Bytes(1000), .garbage_collection_threshold = 0.9}), no_limit)
      << "without a fraction nothing is collected";
}

TEST(AddressRange, IsNineEighthsOfTheMemoryInPages) {
  EXPECT_EQ(address_range({.total_memory = Bytes(80 << 20)}, 20 << 20), 100 << 20);  // 90 MiB, rounded to pages
  EXPECT_EQ(address_range({.total_memory = Bytes(80 << 20)}, 2 << 20), 90 << 20);
  EXPECT_GT(address_range({}, 2 << 20), std::int64_t{1} << 40);
}
}  // namespace
}  // namespace vlmest::config_test
