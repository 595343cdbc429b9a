// SPDX-License-Identifier: Apache-2.0
// What a phase takes beside its kernels: launches, plans of cuDNN's attention, gaps of a CUDA graph.
#include <gtest/gtest.h>

#include <vlmest/graph/builder.hpp>
#include <vlmest/report/run_time.hpp>

namespace vlmest::run_time_test {
namespace {

Device device() {
  Device d;
  d.launch = {10e-6};
  d.attention_plan = {30e-3};
  d.graph_gap = {0.5e-6};
  return d;
}
Work work(double milliseconds, std::int64_t kernels) {
  Work w;
  w.time = {milliseconds * 1e-3};
  w.compute_bound = w.time;
  w.kernels = kernels;
  return w;
}

TEST(RunTime, IsTheLargerOfDeviceAndHost) {
  const RunTime gpu = run_time(work(20, 1000), 0, device()), host = run_time(work(5, 1000), 0, device());
  EXPECT_DOUBLE_EQ(gpu.wall.ms(), 20.5) << "with the gaps between kernels";
  EXPECT_EQ(gpu.bound, Bound::compute);
  EXPECT_DOUBLE_EQ(host.wall.ms(), 10);
  EXPECT_EQ(host.bound, Bound::launch);
}

TEST(RunTime, TheDeviceCatchesUpWithTheHost) {
  const LaunchedWork slow_host{work(5, 0), {20e-3}}, slow_device{work(30, 0), {10e-3}};
  const auto ms = [](std::initializer_list<LaunchedWork> phases) {
    return run_time(std::span(phases.begin(), phases.size()), device()).wall.ms();
  };
  EXPECT_DOUBLE_EQ(ms({slow_host, slow_device}), 50)
      << "kernels of the second wait for the host's way through the first";
  EXPECT_DOUBLE_EQ(ms({slow_device, slow_host}), 35) << "the host is at the end before the device";
  EXPECT_DOUBLE_EQ(ms({slow_host, slow_host, slow_device}), 70);
}

TEST(RunTime, IsBoundByWhatSetsThePaceForLonger) {
  const LaunchedWork slow_host{work(5, 0), {20e-3}}, slow_device{work(30, 0), {10e-3}};
  const std::vector<LaunchedWork> device_longer{slow_host, slow_device}, host_longer{slow_host, slow_host, slow_device};
  EXPECT_EQ(run_time(device_longer, device()).bound, Bound::compute);
  EXPECT_EQ(run_time(host_longer, device()).bound, Bound::launch);
}

TEST(RunTime, NewShapesOfAttentionWaitForTheirPlans) {
  EXPECT_DOUBLE_EQ(run_time(work(5, 1000), 2, device()).wall.ms(), 70);
}

TEST(RunTime, AGraphHasGapsInsteadOfLaunches) {
  const RunTime t = run_time(work(5, 1000), 2, device());
  EXPECT_DOUBLE_EQ(t.graph.ms(), 5.5);
}

/// A phase of attentions over so many keys.
Graph decode(std::initializer_list<Attention> attentions) {
  Builder b;
  b.begin_phase("decode");
  for (const Attention& a : attentions)
    b.emit("attention", a, std::span<const TensorId>{}, std::span<const TensorId>{});
  b.end_phase();
  return b.graph;
}

TEST(NewAttentionPlans, CountsEachShapeOverTheGrownCacheOnce) {
  const auto over = [](std::int64_t keys) { return Attention{.heads = 8, .kv_heads = 8, .q_len = 1, .kv_len = keys}; };
  Attention wide = over(100), math = over(100);
  wide.head_dim = wide.v_dim = 128;
  math.backend = AttentionBackend::math;
  const Graph g = decode({over(100), over(100), wide, math, over(32), over(6400)});
  EXPECT_EQ(new_attention_plans(g, g.phases.at(0), 100), 2);
  EXPECT_EQ(new_attention_plans(g, g.phases.at(0), 99), 0);
}

}  // namespace
}  // namespace vlmest::run_time_test
