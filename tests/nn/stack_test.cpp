// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/nn/activation.hpp>

namespace stack_test {
namespace {

using namespace vlmest;

static_assert(!std::is_default_constructible_v<Trait>, "a stack that leaves a trait out is to be refused");
static_assert(!std::is_default_constructible_v<StackTraits>);

TEST(Stack, EveryProfileHasAStackAndAName) {
  EXPECT_TRUE(traits_of(Runtime::transformers).makes_masks);
  EXPECT_FALSE(traits_of(Runtime::fused).makes_masks);
  EXPECT_EQ(name(Runtime::transformers), "transformers");
  EXPECT_EQ(name(Runtime::fused), "fused");
}

TEST(Stack, AStackWithAKernelLeavesTheModuleAlone) {
  for (const Runtime runtime : {Runtime::transformers, Runtime::fused}) {
    Builder b;
    Plan plan;
    plan.runtime = runtime;
    Context c{b, plan};
    Value x = eager::fill(b, "ones", {2, 8}, DType::bf16), weight = eager::fill(b, "ones", {8}, DType::bf16);
    bool ran = false;
    const Value y = stacks::norm(c, Norm::Kind::rms_norm, x, weight, [&] {
      ran = true;
      return eager::mul(x, weight);
    });
    EXPECT_EQ(ran, runtime == Runtime::transformers);
    EXPECT_EQ(y.shape(), Shape({2, 8}));
  }
}

TEST(Stack, AttentionIsTheStacksOwnOrThePlans) {
  Builder b;
  Plan plan;
  plan.attention = AttentionKind::eager;
  EXPECT_EQ((Context{b, plan}.attention()), AttentionKind::eager);
  plan.runtime = Runtime::fused;
  EXPECT_EQ((Context{b, plan}.attention()), AttentionKind::flash);
}

/// Two phases of one op each.
Graph two_phases() {
  Builder b;
  for (const PhaseKind phase : {PhaseKind::prefill, PhaseKind::decode}) {
    b.begin_phase(phase);
    Value x = eager::fill(b, "ones", {1024, 1024}, DType::fp32);
    b.end_phase();
  }
  return std::move(b.graph);
}

struct Walked {
  std::vector<allocator::PhaseMemory> measured;
  int nodes = 0;
  Bytes reserved{};
};
Walked walk(const RunScript& script) {
  const Graph g = two_phases();
  Timeline timeline;
  timeline.assign(g);
  allocator::Process process(g, timeline, 90);
  Walked r;
  r.reserved = allocator::walk(
      script, g, process, [&](const allocator::NodeMemory&) { ++r.nodes; },
      [&](const allocator::PhaseMemory& m) { r.measured.push_back(m); });
  return r;
}

TEST(RunScript, MeasuresWhatItSaysAlone) {
  const Walked r = walk(stacks::torch_inference);
  ASSERT_EQ(r.measured.size(), 2u);
  EXPECT_EQ(r.nodes, 2);
  // The warm-up left its segment in the cache, and nothing of what it made.
  EXPECT_EQ(r.measured[0].before, Bytes{});
  EXPECT_EQ(r.measured[0].peak, Bytes(4 << 20));
  EXPECT_EQ(r.measured[0].reserved, r.reserved);
}

TEST(RunScript, RoundsEndWhenOneReservesNothingMore) {
  using Do = RunStep::Action;
  const std::array once{RunStep{Do::load}, RunStep{Do::mark}};
  const std::array round{RunStep{Do::pass, RunStep::Phases::all, true}, RunStep{Do::rewind}};
  const Walked r = walk({.once = once, .round = round, .least_rounds = 3, .most_rounds = 6});
  EXPECT_EQ(r.measured.size(), 2u * 3u);
  EXPECT_EQ(walk({.once = once, .round = round, .least_rounds = 5, .most_rounds = 4}).measured.size(), 2u * 4u);
  EXPECT_EQ(walk({.once = once}).measured.size(), 0u);
}

}  // namespace
}  // namespace stack_test
