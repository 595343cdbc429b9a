// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/json/device.hpp>
#include <vlmest/nn/stack/registry.hpp>
#include <vlmest/report/training.hpp>

#include "../nn/training_support.hpp"

namespace vlmest::gradient_accumulation_test {
namespace {

Plan micro_batches(std::int64_t n) {
  Plan p;
  p.text = 12;
  p.gradient_accumulation = n;
  return p;
}

std::vector<std::string> rows_of(const Graph& g, std::size_t phase) {
  const std::vector<std::string> all = test::rows(g);
  const Phase& p = g.phases[phase];
  return {all.begin() + p.first, all.begin() + p.last};
}

Bytes alive_before(const Graph& g, const Phase& p, Role role) {
  Bytes n{};
  for (const Tensor& t : g.tensors)
    if (t.role == role && t.alias_of == none && t.born < p.first && (t.dies == none || t.dies > p.first))
      n += requested_bytes(t);
  return n;
}

int trained_parameters(const Graph& g) {
  int n = 0;
  for (const Tensor& t : g.tensors) n += t.role == Role::gradient && t.alias_of == none && t.dies != t.born;
  return n;
}

TEST(GradientAccumulation, OneMicroBatchIsThePlainStep) {
  const Graph g = test::training(test::llava(), micro_batches(1));
  ASSERT_EQ(g.phases.size(), 3U);
  EXPECT_EQ(alive_before(g, g.phases[0], Role::gradient), Bytes{});
}

TEST(GradientAccumulation, ManyMicroBatchesAreWrittenAsTwo) {
  const Graph two = test::training(test::llava(), micro_batches(2)),
              five = test::training(test::llava(), micro_batches(5));
  std::vector<std::string> names;
  for (const Phase& p : two.phases) names.emplace_back(name(p.kind));
  EXPECT_EQ(names, (std::vector<std::string>{"forward", "backward", "forward", "backward", "step"}));
  EXPECT_EQ(test::rows(two), test::rows(five));
}

TEST(GradientAccumulation, LaterForwardsRunBesideTheGradients) {
  const Graph one = test::training(test::llava(), micro_batches(1)),
              two = test::training(test::llava(), micro_batches(2));
  const Bytes gradients = alive_before(one, one.phases[2], Role::gradient);
  EXPECT_GT(gradients, Bytes{});
  EXPECT_EQ(alive_before(two, two.phases[0], Role::gradient), Bytes{});
  EXPECT_EQ(alive_before(two, two.phases[2], Role::gradient), gradients);
  EXPECT_EQ(alive_before(two, two.phases[4], Role::gradient), gradients) << "they are added to in place";
}

TEST(GradientAccumulation, LaterBackwardsAddEachGradientOnce) {
  for (const bool copied : {false, true})
    for (const Checkpointing c : {Checkpointing::off, Checkpointing::full}) {
      Plan plan = micro_batches(3);
      plan.checkpointing = c;
      const Graph g = test::training(test::llava(), plan, copied);
      const auto nodes = [&](std::size_t i) { return g.phases[i].last - g.phases[i].first; };
      EXPECT_EQ(nodes(2), nodes(0));
      EXPECT_EQ(nodes(3), nodes(1) + trained_parameters(g));
    }
}

TEST(GradientAccumulation, CopiedLayersAccumulateLikeThoseThatRan) {
  for (const Checkpointing c : {Checkpointing::off, Checkpointing::full, Checkpointing::selective}) {
    Plan plan = micro_batches(2);
    plan.checkpointing = c;
    const Graph ran = test::training(test::llava(), plan, false), copied = test::training(test::llava(), plan, true);
    for (std::size_t i = 0; i < ran.phases.size(); ++i) EXPECT_EQ(rows_of(ran, i), rows_of(copied, i)) << i;
  }
}

TEST(GradientAccumulation, WorkGrowsWithTheMicroBatches) {
  const Device device = load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json");
  const Vlm vlm = test::llava();
  const auto estimate = [&](std::int64_t n) {
    Builder b;
    Timeline timeline;
    const Plan plan = micro_batches(n);
    Context c{b, plan, stack_of(plan)};
    return estimate_training(c, vlm, make_sequences(vlm, plan), device, timeline);
  };
  const TrainingEstimate one = estimate(1), two = estimate(2), five = estimate(5);
  EXPECT_EQ(five.work.flops, one.work.flops * 5);
  const std::int64_t later = two.forward_work.kernels + two.backward_work.kernels;
  EXPECT_EQ(five.work.kernels, two.work.kernels + 3 * later);
  EXPECT_GT(later, one.forward_work.kernels + one.backward_work.kernels);
  EXPECT_EQ(five.forward.peak, two.forward.peak);
  EXPECT_EQ(five.reserved, two.reserved);
  EXPECT_GE(five.forward.peak, one.forward.peak + one.gradients);
  EXPECT_EQ(five.gradients, one.gradients);
  Bytes sum{};
  for (const LiveTensor& t : five.tensors) sum += t.bytes;
  EXPECT_EQ(sum, five.peak);
}

TEST(GradientAccumulation, NeedsAtLeastOne) { EXPECT_THROW(test::training(test::llava(), micro_batches(0)), Error); }

}  // namespace
}  // namespace vlmest::gradient_accumulation_test
