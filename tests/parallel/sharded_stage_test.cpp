// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline whose states fully_shard divides among replicas.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/parallel/several_gpus.hpp>
#include <vlmest/parallel/sharded_stage.hpp>

#include "files.hpp"

namespace vlmest::parallel::sharded_stage_test {
namespace {

Layout two_stages(bool reshards = true, ScheduleKind kind = ScheduleKind::one_f_one_b) {
  return {.dp = 2,
          .pp = 2,
          .shard = Shard::fsdp2,
          .reshard_after_forward = reshards,
          .schedule = {kind, 1},
          .micro_batches = 4};
}
Gathers gathered(const Layout& l, int rank) {
  const Strategy s{.gpus = l.dp, .sharding = l.reshard_after_forward ? Sharding::parameters : Sharding::gradients};
  return gathers(s, pipeline_order(l.schedule, rank, l.pp, micro_batches(l)));
}

/// F F B F B F B B and F B F B F B F B.
TEST(ShardedStage, GathersBehindForwards) {
  EXPECT_EQ(gathered(two_stages(), 0).forward, 2);
  EXPECT_EQ(gathered(two_stages(), 0).backward, 3) << "the last one follows a backward";
  EXPECT_EQ(gathered(two_stages(), 1).forward, 1);
  EXPECT_EQ(gathered(two_stages(), 1).backward, 4);
  EXPECT_EQ(gathered(two_stages(true, ScheduleKind::gpipe), 0).forward, 4);
  EXPECT_EQ(gathered(two_stages(true, ScheduleKind::gpipe), 0).backward, 1);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(gathered(two_stages(false), rank).forward, 1);
    EXPECT_EQ(gathered(two_stages(false), rank).backward, 0);
  }
}

const Device& device() {
  static const Device d = tool::find_device("h100-sxm");
  return d;
}
Network host() {
  return {"test", {{.name = "host", .gpus = 64, .bandwidth = Bandwidth{4e11}, .launch = Seconds{1e-5}}}};
}
struct Estimated {
  Estimate e;
  ParallelEstimate p;
};
Estimated train(const Layout& l) {
  expect_modelled(l);
  Plan plan{.image_height = 224, .image_width = 224, .text = 64};
  plan.gradient_accumulation = micro_batches(l);
  Estimator estimator;
  Estimated r{estimator(tool::find_model("internvl3-1b"), plan, device(), Phases::train), {}};
  r.p = estimate_several(estimator, r.e, plan, device(), l, host(), Phases::train);
  return r;
}

const CommunicationRow& row(const ParallelEstimate& p, CollectiveKind kind, PhaseKind phase) {
  for (const CommunicationRow& r : p.communication)
    if (std::string(r.group) == "dp" && r.kind == kind && r.phase == phase) return r;
  ADD_FAILURE() << "no " << name(kind) << " in " << name(phase);
  static const CommunicationRow nothing;
  return nothing;
}

TEST(ShardedStage, StatesAddUpToTheStages) {
  Layout whole = two_stages();
  whole.shard = Shard::none;
  const Estimated ddp = train(whole);
  for (const int dp : {2, 4}) {
    Layout l = two_stages();
    l.dp = dp;
    const Estimated e = train(l);
    ASSERT_EQ(e.p.ranks.size(), 2u);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      const RankEstimate &part = e.p.ranks[stage], &all = ddp.p.ranks[stage];
      EXPECT_EQ(part.ranks, dp);
      for (Bytes RankEstimate::*what : {&RankEstimate::optimizer, &RankEstimate::gradients}) {
        const auto sum = static_cast<double>((part.*what).value() * dp);
        EXPECT_NEAR(sum / static_cast<double>((all.*what).value()), 1, 0.01) << dp << stage;
      }
      EXPECT_LT(part.peak, all.peak);
      EXPECT_LT(part.weights, all.weights);
    }
  }
}

/// All gradients of the stage are whole when the last backward ends, and its weights too.
TEST(ShardedStage, BackwardsEndWithAllOfTheStage) {
  Layout whole = two_stages();
  whole.shard = Shard::none;
  whole.dp = 1;
  const Estimated one = train(whole), e = train(two_stages()), stay = train(two_stages(false));
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const RankEstimate& all = one.p.ranks[stage];
    EXPECT_GT(e.p.ranks[stage].backward, all.gradients + all.weights + e.p.ranks[stage].optimizer);
    EXPECT_GE(stay.p.ranks[stage].forward, e.p.ranks[stage].forward);
  }
}

TEST(ShardedStage, UnitsAreReducedOneAfterTheOther) {
  const Estimated e = train(two_stages());
  std::vector<const Storage*> inputs;
  for (const Storage& s : e.p.training.storages())
    if (s.beside == BesideGraph::reduce_scatter_input) inputs.push_back(&s);
  ASSERT_GE(inputs.size(), 12u);
  EXPECT_EQ(inputs.front()->scope, 0) << "the root first";
  for (std::size_t i = 0; i + 1 < inputs.size(); ++i) {
    const Storage &a = *inputs[i], &b = *inputs[i + 1];
    EXPECT_EQ(a.born, b.born) << "behind the last backward";
    EXPECT_EQ(a.goes, b.comes) << "each in the place of the one before";
    EXPECT_LT(a.scope, b.scope);
    Bytes gradients{};
    for (const Storage& s : e.p.training.storages()) {
      if (s.scope != b.scope || s.dies != b.born) continue;
      if (s.beside == BesideGraph::gathered_weights) {
        EXPECT_LE(s.goes, b.comes) << "divided before";
      }
      if (s.beside == BesideGraph::whole_gradients && s.goes > b.comes) gradients += s.bytes;
    }
    EXPECT_EQ(gradients, b.bytes) << b.scope;
  }
}

TEST(ShardedStage, GradientsAddUpInTheTypeTheyAreReducedIn) {
  Layout wide = two_stages();
  wide.reduce_dtype = DType::fp32;
  const Estimated e = train(two_stages()), w = train(wide);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    EXPECT_GT(w.p.ranks[stage].backward, e.p.ranks[stage].backward + e.p.ranks[stage].gradients)
        << "4 bytes each instead of 2";
  }
  using enum CollectiveKind;
  EXPECT_EQ(row(w.p, reduce_scatter, PhaseKind::backward).bytes,
            2 * row(e.p, reduce_scatter, PhaseKind::backward).bytes);
}

TEST(ShardedStage, SendsWhatItsTasksGather) {
  using enum CollectiveKind;
  const Estimated again = train(two_stages()), once = train(two_stages(false));
  const CommunicationRow &forward = row(again.p, all_gather, PhaseKind::forward),
                         &kept = row(once.p, all_gather, PhaseKind::forward);
  EXPECT_GT(forward.bytes, kept.bytes);
  EXPECT_EQ(row(again.p, reduce_scatter, PhaseKind::backward).count,
            row(once.p, reduce_scatter, PhaseKind::backward).count);
  EXPECT_GT(again.p.step, once.p.step);
  for (const CommunicationRow& r : once.p.communication)
    EXPECT_FALSE(std::string(r.group) == "dp" && r.kind == all_gather && r.phase == PhaseKind::backward);
}

TEST(ShardedStage, WhatIsNotModelledIsRefused) {
  const auto where = [](const Layout& l) {
    try {
      expect_modelled(l);
    } catch (const Error& e) {
      return e.where;
    }
    return std::string();
  };
  EXPECT_EQ(where(two_stages()), "");
  Layout l = two_stages();
  l.tp = 2;
  EXPECT_EQ(where(l), "layout.shard");
  l = two_stages();
  l.schedule = {ScheduleKind::interleaved, 2};
  EXPECT_EQ(where(l), "layout.schedule");
  l.schedule = {ScheduleKind::zero_bubble, 1};
  EXPECT_EQ(where(l), "layout.schedule");
  l = two_stages();
  l.shard = Shard::zero2;
  EXPECT_EQ(where(l), "layout.shard");
}

}  // namespace
}  // namespace vlmest::parallel::sharded_stage_test
