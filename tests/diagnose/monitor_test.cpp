// SPDX-License-Identifier: Apache-2.0
// Readings in, and what they say: growth that single peaks do not turn, runs told apart, nothing claimed unknown.
#include <cmath>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include <vlmest/diagnose/watch/monitor.hpp>

namespace vlmest::monitor_test {
namespace {
using namespace diagnose;
using namespace literals;

MemoryReading at(std::int64_t step, Bytes used) { return {.step = step, .used = used}; }

/// The only GPU that was read.
WatchedMemory only(const MemoryMonitor& m) {
  const auto gpus = m.gpus();
  EXPECT_EQ(gpus.size(), 1u);
  return gpus.empty() ? WatchedMemory{} : gpus.front();
}

TEST(Monitor, KnowsNothingBeforeTheFirstReading) {
  MemoryMonitor m;
  EXPECT_TRUE(m.gpus().empty());
  m.add({.step = 1});  // no size in it
  EXPECT_TRUE(m.gpus().empty());
  EXPECT_EQ(m.readings(), 0);
}

TEST(Monitor, OneReadingSaysNothingOfGrowth) {
  MemoryMonitor m({.total = 80_GiB});
  m.add({.gpu = "3", .step = 7, .used = 10_GiB, .reserved = 12_GiB, .utilization = 0.5});
  const auto g = only(m);
  EXPECT_EQ(g.gpu, "3");
  EXPECT_EQ(g.readings, 1);
  EXPECT_EQ(g.step, 7);
  EXPECT_EQ(g.used, 10_GiB);
  EXPECT_EQ(g.reserved, 12_GiB);
  EXPECT_EQ(g.total, 80_GiB);
  EXPECT_EQ(g.highest, 10_GiB);
  EXPECT_EQ(g.utilization, 0.5);
  EXPECT_EQ(g.growth, std::nullopt);
  EXPECT_EQ(g.steps_to_oom, std::nullopt);
}

TEST(Monitor, GrowthIsPerStepAndMemoryEndsWhereTheHighestReachesIt) {
  MemoryMonitor m({.total = 2_GiB});
  for (int i = 0; i < 20; ++i) m.add(at(10 * i, 1_GiB + i * 10_MiB));
  const auto g = only(m);
  EXPECT_EQ(g.growth, 1_MiB);
  EXPECT_EQ(g.steps_to_oom, 1024 - 190);
}

TEST(Monitor, PeaksOfStepsCountForTheEndAndNotForTheGrowth) {
  MemoryMonitor m({.total = 2_GiB});
  for (int i = 0; i < 20; ++i)
    m.add({.step = i, .used = 1_GiB + i * 1_MiB, .peak = 1_GiB + i * 1_MiB + (i % 5) * 64_MiB});
  const auto g = only(m);
  EXPECT_EQ(g.growth, 1_MiB);
  EXPECT_EQ(g.highest, 1_GiB + 19_MiB + 256_MiB);
  EXPECT_EQ(g.steps_to_oom, 1024 - 19 - 256);
}

TEST(Monitor, SinglePeaksDoNotTurnTheGrowth) {
  std::mt19937 random(1);
  MemoryMonitor m({.total = 80_GiB});
  for (int i = 0; i < 200; ++i) {
    const auto noise = Bytes(static_cast<std::int64_t>(random() % (4 << 20)));
    m.add(at(i, 10_GiB + i * 10_MiB + noise + (i % 7 == 3 ? 20_GiB : 0_GiB)));
  }
  EXPECT_NEAR(*only(m).growth / 10_MiB, 1, 0.02);
  EXPECT_EQ(only(m).trend, Growth::growing);
}

TEST(Monitor, HowARunBeganIsForgotten) {
  MemoryMonitor m({.total = 80_GiB});
  for (int i = 0; i < 100; ++i) m.add(at(i, i * 100_MiB));  // loads, compiles, warms up
  EXPECT_EQ(only(m).trend, Growth::growing);
  for (int i = 100; i < 100 + static_cast<int>(MemoryMonitor::window); ++i) m.add(at(i, 10_GiB));
  EXPECT_EQ(only(m).growth, 0_B);
  EXPECT_EQ(only(m).steps_to_oom, std::nullopt);
}

TEST(Monitor, ACacheThatFillsIsNoLeak) {
  MemoryMonitor m({.total = 80_GiB});
  for (int i = 0; i < 40; ++i) m.add(at(i, 10_GiB - Bytes(static_cast<std::int64_t>(8e9 * std::pow(0.8, i)))));
  EXPECT_NE(only(m).trend, Growth::growing);
  EXPECT_EQ(only(m).steps_to_oom, std::nullopt);
}

TEST(Monitor, NoiseIsNoLeak) {
  std::mt19937 random(2);
  int alarms = 0;
  for (int run = 0; run < 100; ++run) {
    MemoryMonitor m({.total = 80_GiB});
    for (int i = 0; i < 60; ++i) m.add(at(i, 10_GiB + Bytes(static_cast<std::int64_t>(random() % (512U << 20U)))));
    alarms += only(m).steps_to_oom.has_value();
  }
  EXPECT_LE(alarms, 5);
}

TEST(Monitor, WithoutStepsReadingsAreCounted) {
  MemoryMonitor m;
  for (int i = 0; i < 20; ++i) m.add({.used = 1_GiB + i * 1_MiB, .total = 1_GiB + 30_MiB});
  EXPECT_EQ(only(m).growth, 1_MiB);
  EXPECT_EQ(only(m).steps_to_oom, 11);
  EXPECT_EQ(only(m).step, std::nullopt);
}

TEST(Monitor, WhereMemoryEndsIsAsked) {
  const auto total = [](MemoryExpectation e, std::optional<Bytes> read) {
    MemoryMonitor m(e);
    m.add({.used = 1_GiB, .total = read});
    return only(m).total;
  };
  EXPECT_EQ(total({}, {}), std::nullopt);
  EXPECT_EQ(total({.total = 2_GiB}, {}), 2_GiB);
  EXPECT_EQ(total({.total = 2_GiB}, 3_GiB), 3_GiB);
  EXPECT_EQ(total({.total = 2_GiB, .limit = 1_GiB}, 3_GiB), 1_GiB);
}

TEST(Monitor, BeyondTheEndNoStepsAreLeft) {
  MemoryMonitor m({.limit = 1_GiB});
  for (int i = 0; i < 20; ++i) m.add(at(i, 1_GiB + i * 1_MiB));
  EXPECT_EQ(only(m).steps_to_oom, 0);
}

TEST(Monitor, AStepBackIsANewRun) {
  MemoryMonitor m;
  for (int i = 100; i < 110; ++i) m.add(at(i, i * 100_MiB));
  for (int i = 1; i <= 20; ++i) m.add(at(i, 1_GiB));
  EXPECT_EQ(only(m).readings, 20);
  EXPECT_EQ(only(m).growth, 0_B);
  EXPECT_EQ(only(m).highest, 1_GiB);
  EXPECT_EQ(m.readings(), 30);
}

TEST(Monitor, TellsGpusApartAndWhichAreNew) {
  MemoryMonitor m;
  m.add({.gpu = "b", .used = 1_GiB});
  m.add({.gpu = "a", .used = 2_GiB});
  ASSERT_EQ(m.gpus().size(), 2u);
  EXPECT_EQ(m.gpus()[0].gpu, "b");
  EXPECT_TRUE(m.gpus(m.readings()).empty());
  const auto seen = m.readings();
  m.add({.gpu = "a", .used = 3_GiB});
  ASSERT_EQ(m.gpus(seen).size(), 1u);
  EXPECT_EQ(m.gpus(seen)[0].used, 3_GiB);
}

TEST(Monitor, ReservedStandsInForWhatIsUsed) {
  MemoryMonitor m({.limit = 2_GiB});
  for (int i = 0; i < 20; ++i) m.add({.step = i, .reserved = 1_GiB + i * 2_MiB});
  EXPECT_EQ(only(m).used, std::nullopt);
  EXPECT_EQ(only(m).highest, 1_GiB + 38_MiB);
  EXPECT_EQ(only(m).growth, 2_MiB);
}

TEST(Monitor, ABetterFigureTakesThePlaceOfAnother) {
  MemoryMonitor m;
  for (int i = 0; i < 20; ++i) m.add({.step = i, .reserved = 9_GiB});
  for (int i = 20; i < 40; ++i) {
    m.add({.step = i, .used = 1_GiB + i * 1_MiB});
    m.add({.step = i, .reserved = 9_GiB});  // on a line of its own
  }
  EXPECT_EQ(only(m).growth, 1_MiB);
  EXPECT_EQ(only(m).highest, 1_GiB + 39_MiB);
  EXPECT_EQ(only(m).reserved, 9_GiB);
}

TEST(Monitor, RowsOfLogsAreReadings) {
  const auto torch = reading_of(
      {.step = 3, .allocated = 1_GiB, .peak_allocated = 2_GiB, .peak_reserved = 3_GiB, .used = 4_GiB, .rank = 7});
  EXPECT_EQ(torch.gpu, "7");
  EXPECT_EQ(torch.step, 3);
  EXPECT_EQ(torch.used, 1_GiB);
  EXPECT_EQ(torch.peak, 2_GiB);
  EXPECT_EQ(torch.reserved, 3_GiB);
  const auto peak = reading_of({.peak_allocated = 2_GiB, .used = 4_GiB});
  EXPECT_EQ(peak.used, std::nullopt);
  EXPECT_EQ(peak.peak, 2_GiB);
  const auto device = reading_of({.free = 3_GiB, .total = 8_GiB});
  EXPECT_EQ(device.gpu, "0");
  EXPECT_EQ(device.used, 5_GiB);
  EXPECT_EQ(device.total, 8_GiB);
  EXPECT_EQ(reading_of({.free = 9_GiB, .total = 8_GiB}).used, std::nullopt);
}

TEST(Monitor, AnInputWithoutEndTakesNoMoreMemory) {
  MemoryMonitor m;
  for (int i = 0; i < 5000; ++i) m.add({.gpu = std::to_string(i), .used = 1_GiB});
  EXPECT_EQ(m.gpus().size(), MemoryMonitor::most_gpus);
}

TEST(Monitor, ExtremeValuesAreNoOverflow) {
  for (const std::int64_t most : {INT64_MAX, std::int64_t{1}}) {
    MemoryMonitor m({.limit = Bytes(INT64_MAX)});
    m.add(at(INT64_MIN, 0_B));
    for (int i = 0; i < 20; ++i) m.add(at(INT64_MAX - 20 + i, Bytes(most)));
    EXPECT_TRUE(only(m).growth.has_value());
  }
  MemoryMonitor same_step({.limit = 2_GiB});
  for (int i = 0; i < 20; ++i) same_step.add(at(5, i * 1_MiB));
  EXPECT_EQ(only(same_step).steps_to_oom, std::nullopt);
}

}  // namespace
}  // namespace vlmest::monitor_test
