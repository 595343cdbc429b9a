// SPDX-License-Identifier: Apache-2.0
// The Estimator: which phases it estimates, that one call leaves nothing behind for the next, and when a step fits.
#include <gtest/gtest.h>

#include <vlmest/allocator/run_script.hpp>
#include <vlmest/json/device.hpp>
#include <vlmest/report/estimate.hpp>

#include "../nn/training_support.hpp"

namespace vlmest::estimate_test {
namespace {

Device h200() { return load_device(VLMEST_SOURCE_DIR "/models/device/h200-sxm.json"); }

/// The figures of a training step that a change would show in.
std::vector<std::int64_t> figures(const TrainingEstimate& t) {
  return {t.trainable.value(),
          t.weights.value(),
          t.gradients.value(),
          t.optimizer.value(),
          t.saved_activations.value(),
          t.forward.peak.value(),
          t.forward_end.value(),
          t.backward.peak.value(),
          t.step.peak.value(),
          t.reserved.value(),
          t.work.flops.value(),
          t.work.kernels,
          static_cast<std::int64_t>(t.tensors.size())};
}

TEST(Estimator, TheLoopGoesAsItDoesInAProcessOfItsOwn) {
  const Vlm vlm = test::llava();
  const Device device = h200();
  Estimator estimate;
  for (const std::int64_t micro_batches : {1, 3}) {
    Plan plan;
    plan.gradient_accumulation = micro_batches;
    const TrainingEstimate t = estimate(vlm, plan, device, Phases::train).training;
    const Graph& g = estimate.training_graph();
    const auto config = without_limit(device, {});
    allocator::Process measured(g, estimate.training_timeline(), device.sm, config);
    const TrainingMemory step = replay_training(g, measured);
    allocator::Process looping(g, estimate.training_timeline(), device.sm, config);
    const auto nothing = [](const auto&) {};
    EXPECT_EQ(t.reserved_in_loop, allocator::walk(g.loop, g, looping, nothing, nothing));
    EXPECT_GE(t.reserved_in_two_steps, t.backward.peak);
    EXPECT_LE(t.reserved_in_two_steps, t.reserved_in_loop);
    EXPECT_EQ(t.reserved, step.step.reserved);
    EXPECT_EQ(t.backward.peak, step.backward.peak);
  }
}

TEST(Estimator, WithoutDetailsTheTotalsAreTheSame) {
  const Vlm vlm = test::llava();
  Estimator whole, totals;
  totals.details = false;
  for (const std::int64_t micro_batches : {1, 3}) {
    Plan plan;
    plan.text = 12;
    plan.gradient_accumulation = micro_batches;
    const Estimate a = whole(vlm, plan, h200(), Phases::all), b = totals(vlm, plan, h200(), Phases::all);
    EXPECT_TRUE(b.layers.empty() && b.inference.tensors.empty() && b.training.tensors.empty());
    std::vector<std::int64_t> expected = figures(a.training);
    expected.back() = 0;
    EXPECT_EQ(figures(b.training), expected);
    EXPECT_EQ(b.inference.peak, a.inference.peak);
    EXPECT_EQ(b.inference.prefill.work.flops, a.inference.prefill.work.flops);
    EXPECT_EQ(b.inference.prefill.work.kernels, a.inference.prefill.work.kernels);
    EXPECT_EQ(b.training.backward_work.read, a.training.backward_work.read);
    EXPECT_NEAR(b.training.wall.value, a.training.wall.value, 1e-9);
    EXPECT_NEAR(b.inference.prefill.gpu.value, a.inference.prefill.gpu.value, 1e-9);
  }
}

TEST(Estimator, EstimatesThePhasesThatAreAskedFor) {
  const Vlm vlm = test::llava();
  Estimator estimate;
  Plan plan;
  plan.text = 12;
  const Estimate inference = estimate(vlm, plan, h200()), train = estimate(vlm, plan, h200(), Phases::train),
                 all = estimate(vlm, plan, h200(), Phases::all);
  EXPECT_GT(inference.inference.peak, Bytes{});
  EXPECT_EQ(inference.training.peak, Bytes{});
  EXPECT_EQ(train.inference.peak, Bytes{});
  EXPECT_EQ(all.inference.peak, inference.inference.peak);
  EXPECT_EQ(figures(all.training), figures(train.training));
  EXPECT_EQ(train.params.total(), inference.params.total());
  EXPECT_EQ(inference.trainable, train.trainable);
  // Rows of both: each has its prefill and its backward.
  std::size_t with_backward = 0;
  for (const auto& row : all.layers) with_backward += row.backward.kernels > 0 && row.prefill.kernels > 0;
  EXPECT_GE(with_backward, 4u);
}

TEST(Estimator, KeepsNothingBetweenCalls) {
  Estimator used;
  const Vlm llava = test::llava(), blip2 = test::blip2();
  Plan plain, other;
  plain.text = other.text = 12;
  other.batch = 3;
  other.checkpointing = Checkpointing::full;
  other.optimizer = Optimizer::sgd_momentum;
  other.lora.rank = 4;
  const auto fresh = [&](const Vlm& v, const Plan& p) { return Estimator{}(v, p, h200(), Phases::all); };
  for (int i = 0; i < 2; ++i)
    for (const Plan& p : {plain, other})
      for (const Vlm* v : {&llava, &blip2}) {
        const Estimate a = used(*v, p, h200(), Phases::all), b = fresh(*v, p);
        EXPECT_EQ(figures(a.training), figures(b.training));
        EXPECT_EQ(a.inference.peak, b.inference.peak);
        EXPECT_EQ(a.trainable, b.trainable);
      }
}

TEST(Estimator, AdaptersCountAsTrainableNotAsTheModels) {
  Estimator estimate;
  const Estimate with = estimate(test::llava(), test::lora_plan(), h200(), Phases::train),
                 without = estimate(test::llava(), {.text = 12}, h200(), Phases::train);
  EXPECT_EQ(with.params.total(), without.params.total());
  // Three layers of width 256, keys and values of half the heads, rank 8 on q, k, v, o.
  EXPECT_EQ(with.trainable, Elements(3 * 8 * (2 * (256 + 256) + 2 * (256 + 128))));
  EXPECT_EQ(estimate(test::llava(), test::lora_plan(), h200()).trainable, with.trainable);
  EXPECT_GT(with.training.weights, without.training.weights);
  EXPECT_LT(with.training.gradients, without.training.gradients);
}

TEST(Estimator, MicroBatchesAddUp) {
  Estimator estimate;
  Plan plan;
  plan.text = 12;
  const TrainingEstimate one = estimate(test::llava(), plan, h200(), Phases::train).training;
  plan.gradient_accumulation = 5;
  const TrainingEstimate five = estimate(test::llava(), plan, h200(), Phases::train).training;
  EXPECT_EQ(five.work.flops, one.work.flops * 5);
  EXPECT_EQ(five.gradients, one.gradients);
  EXPECT_GT(five.forward.before, one.forward.before);
  EXPECT_EQ(five.optimizer, one.optimizer);
}

/// A step fits where the allocator can place it: always within what it would reserve, never below its peak.
TEST(Estimator, StepFitsWhereItCanBePlaced) {
  Estimator estimate;
  Plan plan;
  plan.text = 3000;
  plan.batch = 8;
  Device device = h200();
  const TrainingEstimate free = estimate(test::llava(), plan, device, Phases::train).training;
  ASSERT_TRUE(free.fits);
  ASSERT_LT(free.peak, free.reserved);
  device.usable_bytes = free.reserved;
  EXPECT_TRUE(estimate(test::llava(), plan, device, Phases::train).training.fits);
  device.usable_bytes = free.peak - Bytes(1);
  EXPECT_FALSE(estimate(test::llava(), plan, device, Phases::train).training.fits);
  device.usable_bytes = free.reserved - Bytes(1 << 20);
  const TrainingEstimate tight = estimate(test::llava(), plan, device, Phases::train).training;
  if (tight.fits) {
    EXPECT_LE(tight.reserved, device.usable_bytes);
  }
  EXPECT_EQ(tight.peak, free.peak);
}

}  // namespace
}  // namespace vlmest::estimate_test
