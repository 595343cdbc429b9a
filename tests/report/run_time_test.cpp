// SPDX-License-Identifier: Apache-2.0
// What a phase takes beside its kernels: launches, reads of results, plans of cuDNN's attention, gaps of a CUDA graph.
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

/// A phase of attentions over so many keys.
Graph decode(std::initializer_list<Attention> attentions) {
  Builder b;
  b.begin_phase(PhaseKind::decode);
  for (const Attention& a : attentions)
    b.emit("attention", a, std::span<const TensorId>{}, std::span<const TensorId>{});
  b.end_phase();
  return b.graph;
}

/// A thousand kernels, one after the other.
Pace run(double milliseconds, double launch_us, Pace p = {}, int kernels = 1000) {
  const Work one = work(milliseconds / kernels, 1);
  for (int i = 0; i < kernels; ++i) p.run(one, {launch_us * 1e-6}, device());
  return p;
}
double wall(const Pace& p) { return p.wall().ms(); }

TEST(Pace, IsThatOfTheSlowerOfDeviceAndHost) {
  const Pace gpu = run(20, 10), host = run(5, 10);
  EXPECT_NEAR(wall(gpu), 20.5 + 0.01, 1e-9) << "with the gaps between kernels, and the first launch";
  EXPECT_EQ(gpu.result(work(1, 1)).bound, Bound::compute);
  EXPECT_NEAR(wall(host), 10 + 0.0055, 1e-9) << "and the last kernel";
  EXPECT_EQ(host.result(work(1, 1)).bound, Bound::launch);
}

TEST(Pace, TheDeviceCatchesUpWithTheHost) {
  EXPECT_NEAR(wall(run(30, 10, run(5, 20))), 20 + 30.5, 0.02)
      << "kernels of the second wait for the host's way through the first";
  EXPECT_NEAR(wall(run(5, 20, run(30, 10))), 36, 0.02) << "the host is at the end before the device";
  EXPECT_NEAR(wall(run(30, 10, run(5, 20, run(5, 20)))), 40 + 30.5, 0.02);
}

TEST(Pace, AHostThatReadsAResultHasNothingInStore) {
  Pace read = run(30, 10), on = read;
  read.synchronise();
  EXPECT_NEAR(wall(run(5, 20, read)), 30.5 + 20, 0.05);
  EXPECT_NEAR(wall(run(5, 20, on)), 36, 0.02);
  Graph g;
  g.ops = {HostSync{Bytes(8)}};
  g.nodes = {Node{.op = 0}};
  Pace synchronised = run(30, 10);
  run_nodes(synchronised, g, 0, 1, std::vector<Work>(1), {}, device());
  EXPECT_EQ(synchronised.streams.end(Stream::host), synchronised.streams.end(Stream::compute));
}

TEST(Pace, IsBoundByWhatSetsItForLonger) {
  EXPECT_EQ(run(30, 10, run(5, 20)).result(work(1, 1)).bound, Bound::compute);
  EXPECT_EQ(run(30, 10, run(5, 20, run(5, 20))).result(work(1, 1)).bound, Bound::launch);
}

TEST(Pace, RepeatsAsIfItRan) {
  for (const double launch : {10.0, 40.0}) {
    const Pace before = run(30, 10);
    Pace once = run(20, launch, before);
    const Pace thrice = run(20, launch, run(20, launch, once));
    once.repeat(before, 3);
    EXPECT_NEAR(wall(once), wall(thrice), 0.2) << "up to where the host stands before the device";
    EXPECT_NEAR(once.graph.ms(), thrice.graph.ms(), 1e-9);
  }
}

TEST(RunTime, NewShapesOfAttentionWaitForTheirPlans) {
  const Graph g = decode({Attention{.heads = 8, .kv_heads = 8, .q_len = 1, .kv_len = 100}});
  const std::vector<Work> works{work(0.1, 1)};
  const auto time = [&](std::int64_t plans) { return run_time(g, g.phases.at(0), works[0], works, plans, device()); };
  EXPECT_NEAR(time(2).wall.ms() - time(0).wall.ms(), 60, 1e-9);
  EXPECT_EQ(time(2).graph, time(0).graph);
}

TEST(RunTime, AGraphHasGapsInsteadOfLaunches) { EXPECT_NEAR(run(5, 10).graph.ms(), 5.5, 1e-9); }

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
