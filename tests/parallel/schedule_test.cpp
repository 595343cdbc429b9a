// SPDX-License-Identifier: Apache-2.0
// Schedules of pipelines: against the closed forms of the papers for stages that take equally long.
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

TEST(Schedule, SendsAreWaitedFor) {
  const auto t = [](Seconds send) { return pipeline_time({}, equal(4), 8, send).all.value; };
  EXPECT_GE(t(Seconds{0.1}), t(Seconds{}) + 6 * 0.1 - 1e-9) << "up to the last stage and back";
}

TEST(Schedule, InterleavedNeedsGroups) { EXPECT_THROW(pipeline_order({ScheduleKind::interleaved, 2}, 0, 4, 6), Error); }

}  // namespace
}  // namespace vlmest::parallel::schedule_test
