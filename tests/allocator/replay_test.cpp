// SPDX-License-Identifier: Apache-2.0
// Histories of the slow allocator, replayed: whole ones, and their ends.
#include <gtest/gtest.h>

#include <vlmest/allocator/reproduce.hpp>

#include "life.hpp"
#include "slow_allocator.hpp"

namespace vlmest::replay_test {
namespace {
using namespace allocator;
using life::Step;

constexpr std::int64_t mib = 1 << 20;

/// Settings under which a stream and pool has one address range: histories do not tell where a second one begins.
life::Life one_range(int seed) {
  life::Life life(static_cast<std::uint64_t>(seed));
  const auto total = Bytes(std::int64_t{64} << 30);
  if (life.config.memory_fraction < 1) life.config.memory_fraction *= life.config.total_memory / total;
  life.config.total_memory = total;
  return life;
}

slow::Allocator lived(life::Life& life, int steps) {
  slow::Allocator slow;
  slow.c = life.config;
  std::vector<std::int64_t> live;
  for (int i = 0; i < steps; ++i) {
    const auto s = life.step(live.size());
    if (s.kind == Step::empty_cache) slow.release_all();
    if (s.kind == Step::synchronize) slow.synchronize(s.stream);
    if (s.kind == Step::record_stream) slow.record_stream(live[s.which], s.stream);
    if (s.kind == Step::free) {
      slow.free(live[s.which]);
      live[s.which] = live.back();
      live.pop_back();
    }
    if (s.kind == Step::alloc)
      if (const auto address = slow.malloc(s.bytes, s.stream)) live.push_back(*address);
  }
  return slow;
}

class Histories : public testing::TestWithParam<int> {};

TEST_P(Histories, WholeOnesLeadToTheirSegments) {
  auto life = one_range(GetParam());
  const auto slow = lived(life, 1500);
  const auto r = replay(slow.history, life.config);
  EXPECT_EQ(r.segments, slow.dump());
  EXPECT_EQ(r.allocated, Bytes(slow.allocated));
  EXPECT_EQ(r.reserved, Bytes(slow.reserved));
  EXPECT_EQ(r.peak_allocated, Bytes(slow.peak_allocated));
  EXPECT_EQ(r.peak_reserved, Bytes(slow.peak_reserved));
  const auto whole = reproduce({slow.dump(), slow.history, life.config});
  EXPECT_TRUE(whole.exact) << whole.difference;
  EXPECT_TRUE(whole.initial.segments.empty());
}

/// Whether a history cut before event i may begin inside a call.
bool inside_a_call(const std::vector<TraceEvent>& history, std::size_t i) {
  if (i == 0 || i == history.size()) return false;
  const auto ends = history[i].action == TraceAction::alloc || history[i].action == TraceAction::oom;
  return replaying::inner(history[i].action) || (ends && replaying::inner(history[i - 1].action));
}

// Recording began late, or old events were dropped. Ages of cached blocks would be lost with them.
TEST_P(Histories, TheirEndsLeadToTheirSegments) {
  auto life = one_range(GetParam());
  life.config.garbage_collection_threshold = 0;
  const auto slow = lived(life, 1500);
  for (int cut = 0; cut < 10; ++cut) {
    auto first = static_cast<std::size_t>(life.uniform(0, static_cast<std::int64_t>(slow.history.size())));
    while (inside_a_call(slow.history, first)) ++first;
    SCOPED_TRACE(first);
    const MemorySnapshot end{
        slow.dump(), {slow.history.begin() + static_cast<std::ptrdiff_t>(first), slow.history.end()}, life.config};
    const auto r = reproduce(end);
    EXPECT_TRUE(r.exact) << r.difference;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Histories, testing::Range(1, 41));

// A block would be in its free list twice, and a walk through the list never end.
TEST(History, CompletesAFreeOnce) {
  const std::int64_t size = 512, other = 1024;
  Segment s{0, Bytes(2 * mib), Pool::small, 0, false, {}};
  s.blocks = {{0, Bytes(size), Bytes(size), BlockState::awaiting},
              {size, Bytes(size), Bytes(size), BlockState::allocated},
              {other, Bytes(size), Bytes(size), BlockState::awaiting},
              {other + size, Bytes(2 * mib - other - size), Bytes(-2), BlockState::cached}};
  const TraceEvent first{TraceAction::free_completed, 0, Bytes(size), 0};
  const TraceEvent second{TraceAction::free_completed, other, Bytes(size), 0};
  const std::vector<TraceEvent> once{first, second}, twice{first, first};
  EXPECT_EQ(replay(once, {}, {{s}, {}, {}}).active, Bytes(size));
  EXPECT_THROW(replay(twice, {}, {{s}, {}, {}}), Error);
}
}  // namespace
}  // namespace vlmest::replay_test
