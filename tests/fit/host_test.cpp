// SPDX-License-Identifier: Apache-2.0
// A host's times out of recorded runs. The shipped H200's were found in the same rows.
#include <fstream>
#include <iterator>

#include <bench/fit/fit_host.hpp>
#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/json/measured_file.hpp>

namespace vlmest::fit_host_test {
namespace {

MeasuredRun step(double step_ms, double forward_ms) {
  MeasuredRun m{.model = "m", .config = {}, .plan = {}, .training = true, .out_of_memory = false, .figures = {}};
  m.figures = {{"step_ms", step_ms},      {"forward_ms", forward_ms}, {"forward_gpu_ms", 10},
               {"forward_kernels", 1000}, {"backward_gpu_ms", 15},    {"backward_kernels", 1500},
               {"optimizer_gpu_ms", 5},   {"optimizer_kernels", 500}};
  return m;
}
MeasuredRun decode(AttentionKind attention, double decode_ms, double gpu_ms) {
  MeasuredRun m{.model = "m", .config = {}, .plan = {}, .training = false, .out_of_memory = false, .figures = {}};
  m.plan.attention = attention;
  m.figures = {{"decode_ms", decode_ms}, {"decode_gpu_ms", gpu_ms}, {"decode_kernels", 1000}};
  return m;
}

TEST(FitHost, TimesOfEachKernel) {
  const std::vector<MeasuredRun> runs{step(70, 30), step(100, 40), decode(AttentionKind::eager, 12, 5),
                                      decode(AttentionKind::sdpa, 47, 5)};
  const fit::HostTimes t = fit::host_times(runs);
  ASSERT_TRUE(t.launch && t.forward_launch && t.backward_launch && t.attention_plan);
  EXPECT_NEAR(t.launch->middle.us(), 12, 1e-9);
  EXPECT_NEAR(t.forward_launch->middle.us(), 35, 1e-9);
  EXPECT_NEAR(t.forward_launch->spread.low, 30.0 / 35, 1e-9);
  EXPECT_NEAR(t.forward_launch->spread.high, 40.0 / 35, 1e-9);
  EXPECT_NEAR(t.backward_launch->middle.us(), 25, 1e-9);  // 40 ms and 60 ms for 2000 kernels
  EXPECT_NEAR(t.attention_plan->middle.us(), 35000, 1e-6);
}

TEST(FitHost, PhasesThatTheGpuLimitsSayNothing) {
  const std::vector<MeasuredRun> runs{step(32, 12.9), decode(AttentionKind::eager, 12, 10)};
  const fit::HostTimes t = fit::host_times(runs);
  EXPECT_FALSE(t.launch || t.forward_launch || t.backward_launch || t.attention_plan);
}

TEST(FitHost, CheckpointedStepsSayNothing) {
  MeasuredRun m = step(70, 30);
  m.plan.checkpointing = Checkpointing::full;
  EXPECT_FALSE(fit::host_times(std::vector<MeasuredRun>{m}).forward_launch);
}

TEST(FitHost, TheShippedHostIsFoundAgain) {
  std::ifstream in(VLMEST_SOURCE_DIR "/tests/validation/rows/h200-times.json");
  const json::MeasuredFile f = json::read_measured(std::string(std::istreambuf_iterator<char>(in), {}), "rows");
  std::vector<MeasuredRun> runs;
  for (const auto& p : f.runs) runs.push_back(p.row);
  const fit::HostTimes t = fit::host_times(runs);
  const Device d = load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json");
  ASSERT_TRUE(t.launch && t.forward_launch && t.backward_launch && t.attention_plan);
  const auto near = [](const fit::HostTime& found, Seconds shipped) {
    EXPECT_NEAR(found.middle.value / shipped.value, 1, 0.1);
  };
  near(*t.launch, d.launch);
  near(*t.forward_launch, d.forward_launch);
  near(*t.backward_launch, d.backward_launch);
  near(*t.attention_plan, d.attention_plan);
  EXPECT_GE(t.forward_launch->runs, 10u);
}

}  // namespace
}  // namespace vlmest::fit_host_test
