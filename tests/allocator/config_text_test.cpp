// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/allocator/config_text.hpp>

namespace vlmest::config_text_test {
namespace {
using namespace allocator;

constexpr std::int64_t mib = 1 << 20;

TEST(AllocatorConfigText, ReadsEverySettingThatPlacesMemory) {
  const auto c = parse_allocator_config(
      "max_split_size_mb:128, max_non_split_rounding_mb:64,large_segment_size_mb:32,garbage_collection_threshold:0.75,"
      "per_process_memory_fraction:0.5,expandable_segments:True,roundup_power2_divisions:8,backend:native,"
      "pinned_use_background_threads:True,release_lock_on_cudamalloc:False",
      {.total_memory = Bytes(1 << 30)});
  EXPECT_EQ(c.max_split_size, Bytes(128 * mib));
  EXPECT_EQ(c.max_non_split_rounding, Bytes(64 * mib));
  EXPECT_EQ(c.large_segment_size, Bytes(32 * mib));
  EXPECT_EQ(c.garbage_collection_threshold, 0.75);
  EXPECT_EQ(c.memory_fraction, 0.5);
  EXPECT_TRUE(c.expandable_segments);
  EXPECT_EQ(c.roundup_power2_divisions[0], 8);
  EXPECT_EQ(c.roundup_power2_divisions[15], 8);
  EXPECT_EQ(c.total_memory, Bytes(1 << 30)) << "what the text cannot say is kept";
  EXPECT_EQ(parse_allocator_config(""), AllocatorConfig{});
  EXPECT_EQ(parse_allocator_config("large_segment_size_mb:32").max_non_split_rounding, Bytes(32 * mib))
      << "it follows the segments where it is not given";
  EXPECT_EQ(parse_allocator_config("max_split_size_mb:20000000000000").max_split_size, Bytes(no_limit));
}

// The example of torch's notes on CUDA: [256:1,512:2,1024:4,>:8].
TEST(AllocatorConfigText, ReadsRoundupsPerInterval) {
  const auto d = parse_allocator_config("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]").roundup_power2_divisions;
  const std::array<std::int32_t, 16> expected{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
  EXPECT_EQ(d, expected);
  const auto gap = parse_allocator_config("roundup_power2_divisions:[64:8,256:4]").roundup_power2_divisions;
  const std::array<std::int32_t, 16> with_gap{8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(gap, with_gap);
  const auto far = parse_allocator_config("roundup_power2_divisions:[1048576:2]").roundup_power2_divisions;
  EXPECT_EQ(far[15], 2);
  EXPECT_EQ(far[0], 2);
}

std::string refused(const char* text) {
  try {
    parse_allocator_config(text);
  } catch (const Error& e) {
    return e.where + ": " + e.what_happened + " (" + e.hint + ")";
  }
  return "accepted";
}

TEST(AllocatorConfigText, RefusesByNameWithAHint) {
  EXPECT_EQ(refused("expandable_segment:True"),
            "allocator settings.expandable_segment: is not a setting of torch's allocator (did you mean "
            "expandable_segments?)");
  EXPECT_EQ(refused("expandable_segments:true"),
            "allocator settings.expandable_segments: 'true' is neither True nor False (mind the capital)");
  EXPECT_EQ(refused("backend:cudaMallocAsync"),
            "allocator settings.backend: cudaMallocAsync leaves placement to the driver's pool, which is not modelled "
            "(use native)");
  for (const char* text : {"max_split_size_mb",
                           "max_split_size_mb:",
                           "max_split_size_mb:x",
                           "max_split_size_mb:19",
                           "max_split_size_mb:-1",
                           "max_split_size_mb:64 expandable_segments:True",
                           "max_non_split_rounding_mb:10",
                           "large_segment_size_mb:10",
                           "garbage_collection_threshold:0",
                           "garbage_collection_threshold:1.0",
                           "per_process_memory_fraction:0.5",
                           "per_process_memory_fraction:2",
                           "backend:mine",
                           "roundup_power2_divisions:3",
                           "roundup_power2_divisions:0",
                           "roundup_power2_divisions:[3:1]",
                           "roundup_power2_divisions:[4:3]",
                           "roundup_power2_divisions:[4:2",
                           "roundup_power2_divisions:[4]",
                           "roundup_power2_divisions:[4:2 8:2]",
                           ",",
                           ":",
                           "a",
                           "[",
                           "nonsense:1"})
    EXPECT_NE(refused(text), "accepted") << text;
}
}  // namespace
}  // namespace vlmest::config_text_test
