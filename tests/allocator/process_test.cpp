// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/allocator/process.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace vlmest::process_test {
namespace {
using namespace allocator;
using namespace literals;

/// Two linears with weights of 8 MiB over 8,192 rows of 1,024: hidden values of 64 MiB, a result of 16 MiB.
struct Network {
  Builder builder;
  Plan plan;
  Value x;
  Timeline timeline;

  Network() {
    Context c{builder, plan, stack_of(plan)};
    const Linear up = make_linear(c, "up", 1024, 4096, false), down = make_linear(c, "down", 4096, 1024, false);
    x = builder.existing("x", Role::input, plan.dtype, {8192, 1024});
    builder.begin_phase(PhaseKind::forward);
    Value hidden = forward(c, up, x);
    hidden = activate(c, Activation::relu, hidden);
    Value y = forward(c, down, std::move(hidden));
    builder.end_phase();
    timeline.assign(builder.graph);
  }
  PhaseMemory run(const AllocatorConfig& config) const {
    Process process(builder.graph, timeline, 90, config);
    process.load();
    return process.run(builder.graph.phases[0]);
  }
};

TEST(Process, SaysHowReservedMemoryIsSpentAtThePeak) {
  const Network network;
  const auto m = network.run({});
  const auto workspace = cublas_workspace(90);
  EXPECT_EQ(m.peak, 8_MiB + 8_MiB + 16_MiB + 64_MiB + 64_MiB + workspace);
  EXPECT_EQ(m.at_peak.reserved, m.peak + m.at_peak.releasable + m.at_peak.split);
  EXPECT_EQ(m.at_peak.split, 4_MiB) << "two weights of 8 MiB share a segment of 20";
  EXPECT_EQ(m.at_peak.releasable, 0_B);
  EXPECT_EQ(m.at_peak.largest_free, 4_MiB);
  EXPECT_EQ(m.reserved, m.at_peak.reserved) << "the result takes the place of the hidden values";
}

/// Between two nodes storages go and come turn by turn, and the peak may lie there.
TEST(Process, HandsOverBetweenNodes) {
  Network network;
  const Graph& g = network.builder.graph;
  const NodeId last = g.phases[0].last;
  ASSERT_GE(last, 3);
  constexpr Bytes large = 512_MiB;
  const auto storage = [](NodeId born, NodeId dies, Bytes bytes, std::uint8_t comes, std::uint8_t goes) {
    return vlmest::Storage{vlmest::none, born, dies, 0, bytes, Role::workspace, 0, BesideGraph::nothing, comes, goes};
  };
  const Bytes alone = network.run({}).peak;
  // The second is there before the first goes: both together between the nodes, one of them while nodes run.
  network.timeline.add(std::vector<vlmest::Storage>{storage(0, 1, large, own_turn, 1), storage(1, last, large, 0, 0)});
  const PhaseMemory over = network.run({});
  EXPECT_GT(over.peak, 2 * large);
  EXPECT_EQ(over.node, 1);
  EXPECT_EQ(over.turn, 0);
  EXPECT_EQ(over.scratch, 0_B);
  // Here the first goes before.
  Network other;
  other.timeline.add(std::vector<vlmest::Storage>{storage(0, 1, large, own_turn, 0), storage(1, last, large, 0, 0)});
  EXPECT_LE(other.run({}).peak, alone + large);
  // What comes ahead of the next phase's first node is the end of this one.
  Network end;
  end.timeline.add(std::vector<vlmest::Storage>{storage(last, vlmest::none, large, 0, 0)});
  EXPECT_EQ(end.run({}).node, last);
}

TEST(Process, RunsUnderAnySettings) {
  const Network network;
  const auto workspace = cublas_workspace(90);
  EXPECT_EQ(workspace, 32_MiB);
  const auto plain = network.run({}), pages = network.run({.expandable_segments = true});
  EXPECT_EQ(pages.peak, plain.peak);
  EXPECT_EQ(plain.at_peak.reserved, 20_MiB + 16_MiB + 64_MiB + 64_MiB + workspace);
  EXPECT_EQ(pages.at_peak.reserved, 200_MiB) << "192 MiB in pages of 20";
  EXPECT_EQ(pages.at_peak.reserved, pages.peak + pages.at_peak.releasable + pages.at_peak.split);
  EXPECT_THROW(network.run({.capacity = 150_MiB}), OutOfMemory);
}
}  // namespace
}  // namespace vlmest::process_test
