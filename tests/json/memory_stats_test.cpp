// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/json/memory_stats.hpp>

namespace vlmest::memory_stats_test {
namespace {

TEST(MemoryStats, FlatAndNestedAreTheSame) {
  const auto flat = json::read_memory_stats(nlohmann::json::parse(R"({
    "allocated_bytes.all.current": 100, "allocated_bytes.all.peak": 300, "allocated_bytes.all.allocated": 900,
    "allocated_bytes.all.freed": 800, "allocated_bytes.large_pool.current": 60,
    "reserved_bytes.all.current": 2097152, "reserved_bytes.all.peak": 4194304,
    "segment.all.current": 1, "inactive_split_bytes.all.current": 7, "num_ooms": 2, "num_alloc_retries": 5,
    "oversize_segments.current": 0})"));
  EXPECT_EQ(flat.allocated.all->current, diagnose::PrintedSize::exactly(Bytes(100)));
  EXPECT_EQ(flat.allocated.all->peak.value, Bytes(300));
  EXPECT_EQ(flat.allocated.large->current.value, Bytes(60));
  EXPECT_FALSE(flat.allocated.small);
  EXPECT_EQ(flat.reserved.all->peak.value, Bytes(4194304));
  EXPECT_EQ(flat.non_releasable.all->current.value, Bytes(7));
  EXPECT_EQ(flat.segments.all->current, 1);
  EXPECT_EQ(flat.ooms, 2);
  EXPECT_EQ(flat.retries, 5);
  EXPECT_TRUE(flat.oversize_segments);
  const auto nested = json::read_memory_stats(nlohmann::json::parse(R"({
    "allocated_bytes": {"all": {"current": 100, "peak": 300, "allocated": 900, "freed": 800}}, "num_ooms": 2})"));
  EXPECT_EQ(nested.allocated.all, flat.allocated.all);
  EXPECT_EQ(nested.ooms, 2);
}

TEST(MemoryStats, WhatIsNoneIsRefused) {
  const auto read = [](const char* text) { return json::read_memory_stats(nlohmann::json::parse(text)); };
  EXPECT_THROW(read("[]"), Error);
  EXPECT_THROW(read("{}"), Error);
  EXPECT_THROW(read(R"({"allocated_bytes.all.current": "x"})"), Error);
  EXPECT_THROW(read(R"({"allocated_bytes.all.current": -1})"), Error);
  EXPECT_THROW(read(R"({"allocated_bytes.all.current": 18446744073709551615})"), Error);
}

}  // namespace
}  // namespace vlmest::memory_stats_test
