// SPDX-License-Identifier: Apache-2.0
#include "../additions/runtime/stack.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/registry.hpp>

namespace stack_test {
namespace {

using namespace vlmest;

static_assert(!std::is_default_constructible_v<Trait>, "a stack that leaves a trait out is to be refused");
static_assert(!std::is_default_constructible_v<StackTraits>);
static_assert(!std::is_default_constructible_v<StackWords>, "and so is one that leaves a word out");
static_assert(!std::is_default_constructible_v<Stack>);

TEST(Stack, EveryRuntimeHasAStackAndANameOfItsOwn) {
  EXPECT_TRUE(traits_of(runtime_id("transformers")).makes_masks);
  EXPECT_FALSE(traits_of(runtime_id("fused")).makes_masks);
  EXPECT_EQ(name(Plan{}.runtime), "transformers");
  for (const Runtime r : runtimes) {
    EXPECT_EQ(value_of<Runtime>(name(r)), r) << "two rows have one name";
    EXPECT_EQ(&stack_of(Plan{.runtime = r}), &stack_of(r));
  }
}

TEST(Stack, HintsNameARuntimeThatHasATrait) {
  EXPECT_EQ(name(first_with(&StackTraits::divides_layers)), "transformers");
  EXPECT_EQ(name(first_with(&StackTraits::fuses_loss)), "fused");
  EXPECT_EQ(name(first_with(&StackTraits::fuses_loss, false)), "transformers");
}

/// tests/additions/runtime: the blocks run a stack that no registry knows.
TEST(Stack, AContextRunsTheStackThatItIsGiven) {
  const auto names = [](const Stack& stack) {
    Builder b;
    const Plan plan;
    Context c{b, plan, stack};
    const RmsNorm norm = make_rms_norm(c, "norm", 8);
    const GatedMlp mlp = make_gated_mlp(c, "mlp", 8, 16, false, Activation::silu);
    Value x = eager::fill(b, "ones", {2, 8}, DType::bf16);
    b.begin_phase(PhaseKind::prefill);
    Value y = forward(c, norm, x);
    y = forward(c, mlp, y);
    b.end_phase();
    std::set<std::string> r;
    for (const Node& n : b.graph.nodes) r.insert(n.name);
    return r;
  };
  const auto of = [&](const char* node, const Stack& stack) { return names(stack).contains(node); };
  EXPECT_TRUE(of("toy_norm", stacks::toy::stack));
  EXPECT_FALSE(of("toy_norm", stacks::transformers::stack));
  EXPECT_FALSE(of("rsqrt", stacks::toy::stack));
  EXPECT_TRUE(of("rsqrt", stacks::transformers::stack));
  EXPECT_FALSE(of("silu", stacks::toy::stack));
  EXPECT_TRUE(of("silu", stacks::transformers::stack));
}

TEST(Stack, AStackWithAKernelLeavesTheModuleAlone) {
  for (const Runtime runtime : runtimes) {
    Builder b;
    Plan plan;
    plan.runtime = runtime;
    Context c{b, plan, stack_of(plan)};
    Value x = eager::fill(b, "ones", {2, 8}, DType::bf16), weight = eager::fill(b, "ones", {8}, DType::bf16);
    bool ran = false;
    const Value y = stacks::norm(c, Norm::Kind::rms_norm, x, weight, [&] {
      ran = true;
      return eager::mul(x, weight);
    });
    EXPECT_EQ(ran, runtime == runtime_id("transformers"));
    EXPECT_EQ(y.shape(), Shape({2, 8}));
  }
}

TEST(Stack, AttentionIsTheStacksOwnOrThePlans) {
  Builder b;
  Plan plan;
  plan.attention = AttentionKind::eager;
  EXPECT_EQ((Context{b, plan, stack_of(plan)}.attention()), AttentionKind::eager);
  plan.runtime = runtime_id("fused");
  EXPECT_EQ((Context{b, plan, stack_of(plan)}.attention()), AttentionKind::flash);
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
