// SPDX-License-Identifier: Apache-2.0
// Schedules of pipelines: against the closed forms of the papers for stages that take equally long.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/parallel/schedule.hpp>

namespace vlmest::parallel::schedule_test {
namespace {

std::vector<StageTime> equal(int stages) {
  return std::vector<StageTime>(static_cast<std::size_t>(stages), {Seconds{1}, Seconds{2}, Seconds{1}});
}

TEST(Schedule, BubblesOfEqualStages) {
  for (const int p : {2, 4, 8})
    for (const std::int64_t m : {8, 16, 32}) {
      // (p - 1) / (m + p - 1) of the time of all ranks (arXiv:2104.04473, section 2.2.1, with the ideal time in it).
      const double bubble = static_cast<double>(p - 1) / static_cast<double>(m + p - 1);
      for (const ScheduleKind k : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
        const PipelineTime t = pipeline_time({k, 1}, equal(p), m, Seconds{});
        EXPECT_NEAR(t.bubble_share, bubble, 1e-12) << p << " " << m;
        EXPECT_NEAR(t.all.value, 3.0 * static_cast<double>(m + p - 1), 1e-9);
      }
      // Interleaving divides the bubble by the chunks (section 2.2.2).
      const PipelineTime t = pipeline_time({ScheduleKind::interleaved, 2}, equal(p), m, Seconds{});
      EXPECT_NEAR(t.all.value, 3.0 * (static_cast<double>(m) + (p - 1) / 2.0), 1e-9) << p << " " << m;
    }
}

TEST(Schedule, ZeroBubbleWaitsAThirdOf1F1B) {
  // (p - 1)(T_F + T_B - T_W) of ZB-H1 against (p - 1)(T_F + T_B + T_W) (arXiv:2401.10241, table 1), T_F = T_B = T_W.
  const int p = 4;
  const std::int64_t m = 16;
  EXPECT_NEAR(pipeline_time({ScheduleKind::zero_bubble, 1}, equal(p), m, Seconds{}).all.value, 3.0 * m + (p - 1), 1e-9);
}

TEST(Schedule, EachTaskRunsOnce) {
  for (const Schedule s : {Schedule{ScheduleKind::gpipe, 1}, Schedule{ScheduleKind::one_f_one_b, 1},
                           Schedule{ScheduleKind::interleaved, 3}, Schedule{ScheduleKind::zero_bubble, 1}})
    for (int stage = 0; stage < 4; ++stage) {
      const auto order = pipeline_order(s, stage, 4, 8);
      const std::size_t kinds = s.kind == ScheduleKind::zero_bubble ? 3 : 2;
      EXPECT_EQ(order.size(), kinds * 8 * static_cast<std::size_t>(s.chunks));
      std::vector<int> seen(3 * 3 * 8, 0);
      for (const PipelineTask& t : order)
        EXPECT_EQ(++seen[static_cast<std::size_t>(t.kind) * 24 + static_cast<std::size_t>(t.chunk) * 8 +
                         static_cast<std::size_t>(t.micro_batch)],
                  1);
    }
}

HeldInStep held_with_equal_chunks(const Schedule& s, int stage, int stages, std::int64_t micro_batches) {
  return held_in_step(s, stage, stages, micro_batches,
                      std::vector<Bytes>(static_cast<std::size_t>(s.chunks), Bytes(1)));
}

/// The most micro-batches in flight, in parts of all chunks: those held and the one that runs.
double in_flight(const Schedule& s, int stage, int stages, std::int64_t micro_batches) {
  const HeldInStep held = held_with_equal_chunks(s, stage, stages, micro_batches);
  std::vector<HeldMicroBatches> passes{held.before, held.first};
  passes.insert(passes.end(), held.forward.begin(), held.forward.end());
  passes.insert(passes.end(), held.backward.begin(), held.backward.end());
  double most = 0;
  for (const HeldMicroBatches& p : passes)
    for (std::size_t running = 0; running < p.size(); ++running) {
      auto parts = static_cast<std::int64_t>(running) + 1;  // what it has gone through, and goes through
      for (const std::int64_t held_of_chunk : p[running]) parts += held_of_chunk;
      most = std::max(most, static_cast<double>(parts) / s.chunks);
    }
  return most;
}

TEST(Schedule, MicroBatchesInFlight) {
  EXPECT_EQ(in_flight({ScheduleKind::gpipe, 1}, 2, 4, 16), 16);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(in_flight({}, stage, 4, 16), 4 - stage);
    EXPECT_EQ(in_flight({ScheduleKind::zero_bubble, 1}, stage, 4, 16), 4);
    EXPECT_EQ(in_flight({}, stage, 4, 2), std::min(2, 4 - stage)) << "no more than there are";
  }
  // The first stage holds p (1 + (p - 1) / (p v)) of 1F1B's p (arXiv:2205.05198, section 4.2.3).
  EXPECT_DOUBLE_EQ(in_flight({ScheduleKind::interleaved, 2}, 0, 4, 16), 4 * (1 + 3.0 / 8));
}

/// When gradients are there first, fewer micro-batches may be in flight: GPipe's are all there before any.
TEST(Schedule, HeldByWhatHasGradients) {
  const HeldInStep gpipe = held_with_equal_chunks({ScheduleKind::gpipe, 1}, 0, 2, 8);
  EXPECT_EQ(gpipe.before[0][0], 7);
  EXPECT_EQ(gpipe.first[0][0], 7);
  EXPECT_EQ(gpipe.forward[0][0][0], 0) << "none";
  EXPECT_EQ(gpipe.backward[0][0][0], 6);
  const HeldInStep last = held_with_equal_chunks({}, 1, 2, 8);
  for (const HeldMicroBatches& p : {last.before, last.first, last.forward[0], last.backward[0]}) EXPECT_EQ(p[0][0], 0);
  // Rank 0 of 2 with two chunks and four micro-batches: F0.0 F0.1 F1.0 F1.1 F0.2 B1.0 F0.3 B1.1 F1.2 B0.0 F1.3 B0.1 ...
  const HeldInStep two = held_with_equal_chunks({ScheduleKind::interleaved, 2}, 0, 2, 4);
  EXPECT_EQ(two.before[0][0], 2) << "F0.2 over 0.0 and 0.1";
  EXPECT_EQ(two.before[0][1], 2) << "and over 1.0 and 1.1";
  EXPECT_EQ(two.first[0][0], 3) << "B0.0 beside 0.1, 0.2 and 0.3";
  EXPECT_EQ(two.first[0][1], 1) << "and 1.2";
  EXPECT_EQ(two.forward[0][1][0], 3) << "F1.2, whose 0.2 is its own";
  EXPECT_EQ(two.backward[1][0][0], 2) << "B0.1 beside 0.2 and 0.3";
}

/// F F F F B F B F B F B B B B and F B F B F B, by what a backward follows that is not the first.
TEST(Schedule, BackwardsFollowForwardsOrBackwards) {
  const HeldInStep first = held_with_equal_chunks({}, 0, 4, 7), last = held_with_equal_chunks({}, 3, 4, 7),
                   gpipe = held_with_equal_chunks({ScheduleKind::gpipe, 1}, 0, 4, 7),
                   few = held_with_equal_chunks({}, 0, 4, 3);
  EXPECT_TRUE(first.has_behind_forward && first.has_behind_backward && first.has_forward_between);
  EXPECT_EQ(first.behind_forward[0][0], 3);
  EXPECT_EQ(first.behind_backward[0][0], 2) << "when no forward follows any more";
  EXPECT_TRUE(last.has_behind_forward && !last.has_behind_backward && last.has_forward_between);
  EXPECT_TRUE(!gpipe.has_behind_forward && gpipe.has_behind_backward && !gpipe.has_forward_between);
  EXPECT_EQ(gpipe.behind_backward[0][0], 5);
  EXPECT_TRUE(!few.has_behind_forward && few.has_behind_backward && !few.has_forward_between);
}

TEST(Schedule, SendsAreWaitedFor) {
  const auto t = [](Seconds send) { return pipeline_time({}, equal(4), 8, send).all.value; };
  EXPECT_GE(t(Seconds{0.1}), t(Seconds{}) + 6 * 0.1 - 1e-9) << "up to the last stage and back";
}

TEST(Schedule, InterleavedNeedsGroups) { EXPECT_THROW(pipeline_order({ScheduleKind::interleaved, 2}, 0, 4, 6), Error); }

}  // namespace
}  // namespace vlmest::parallel::schedule_test
