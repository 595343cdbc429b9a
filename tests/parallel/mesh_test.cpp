// SPDX-License-Identifier: Apache-2.0
// Meshes of more than one dimension: layers divided within groups of neighbours, replicas and stages of that.
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <vlmest/json/hf/read.hpp>
#include <vlmest/parallel/estimate_layout.hpp>
#include <vlmest/report/memory_curve.hpp>

#include "files.hpp"

namespace vlmest::parallel::mesh_test {
namespace {

Vlm model(const std::string& name = "qwen2.5-vl-7b") {
  static const nlohmann::json all = nlohmann::json::parse(
      std::ifstream(std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/divided_layers.json"));
  return json::hf::read(all.at("configs").at(name), name);
}
const Device& device() {
  static const Device d = tool::find_device("h100-sxm");
  return d;
}
/// Hosts of eight GPUs, ten times as fast inside.
Network hosts_of_8() {
  return {"test",
          {{.name = "host", .gpus = 8, .bandwidth = Bandwidth{4e11}, .launch = Seconds{1e-5}},
           {.name = "cluster", .gpus = 1024, .bandwidth = Bandwidth{4e10}, .launch = Seconds{2e-5}}}};
}

struct Estimated {
  Estimate e;
  ParallelEstimate p;
};

/// A training step of a small sequence.
Estimated train(const Layout& l, const std::string& name = "qwen2.5-vl-7b") {
  expect_modelled(l);
  const Plan plan = plan_of_rank({.image_height = 224, .image_width = 224, .text = 64, .markers = false}, l);
  const Vlm vlm = model(name);
  Estimator estimator;
  Estimated r{estimator(vlm, plan, device(), Phases::train), {}};
  r.p = estimate_layout(estimator, r.e, vlm, plan, device(), l, hosts_of_8(), Phases::train);
  return r;
}

const CommunicationRow& row(const ParallelEstimate& p, const std::string& group, CollectiveKind kind, PhaseKind phase) {
  for (const CommunicationRow& r : p.communication)
    if (r.group == group && r.kind == kind && r.phase == phase) return r;
  ADD_FAILURE() << "no " << name(kind) << " of " << group << " in " << name(phase);
  static const CommunicationRow nothing;
  return nothing;
}

/// But for the ends of blocks, which depend on what else is allocated.
void expect_alike(Bytes a, Bytes b) {
  EXPECT_NEAR(static_cast<double>(a.value()), static_cast<double>(b.value()), 0.002 * static_cast<double>(b.value()));
}

std::string refused(const Layout& l) {
  try {
    expect_modelled(l);
  } catch (const Error& e) {
    return e.where;
  }
  return {};
}

TEST(Mesh, OneReplicaIsTheDividedModel) {
  const Estimated alone = train({.tp = 2});
  Plan plan{.image_height = 224, .image_width = 224, .text = 64, .markers = false};
  plan.shards = {.ranks = 2};
  Estimator estimator;
  Estimate e = estimator(model(), plan, device(), Phases::train);
  const ParallelEstimate p = estimate_several(estimator, e, plan, device(), {.tp = 2}, hosts_of_8(), Phases::train);
  const RankEstimate &a = alone.p.ranks.at(0), &b = p.ranks.at(0);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.forward, b.forward);
  EXPECT_EQ(a.backward, b.backward);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.reserved, b.reserved);
  EXPECT_EQ(alone.e.training.wall, e.training.wall);
  EXPECT_EQ(alone.p.outside, p.outside);
}

TEST(Mesh, FullyShardDividesWhatARankOfTheLayersHas) {
  const RankEstimate divided = train({.tp = 2}).p.ranks.at(0);
  for (const int dp : {2, 4, 8}) {
    const Estimated both = train({.dp = dp, .tp = 2, .shard = Shard::fsdp2});
    ASSERT_EQ(both.p.ranks.size(), 1u);
    const RankEstimate& rank = both.p.ranks[0];
    EXPECT_EQ(rank.ranks, dp * 2);
    const auto near = [&](Bytes part, Bytes whole, const char* what) {
      // A tensor's last part may be filled up, blocks are rounded to 512 bytes, and what a block has left of up to 1
      // MiB stays with it.
      EXPECT_NEAR(static_cast<double>((part * dp).value()), static_cast<double>(whole.value()), 5e-3 * 3.4e9)
          << what << dp;
      EXPECT_GE(part * dp, whole) << what << dp;
    };
    near(rank.weights, divided.weights, "weights");
    near(rank.optimizer, divided.optimizer, "optimizer");
    EXPECT_LT(rank.peak, divided.peak) << dp;
  }
}

TEST(Mesh, ReplicasHoldAllThatARankOfTheLayersHas) {
  const RankEstimate divided = train({.tp = 2}).p.ranks.at(0), rank = train({.dp = 2, .tp = 2}).p.ranks.at(0);
  expect_alike(rank.weights, divided.weights);
  EXPECT_EQ(rank.optimizer, divided.optimizer);
  // The buckets are there from the beginning, as large as the gradients.
  EXPECT_NEAR(static_cast<double>((rank.step - divided.step).value()), static_cast<double>(divided.gradients.value()),
              0.002 * static_cast<double>(divided.gradients.value()));
}

TEST(Mesh, EachGroupSendsWhatTheoryHas) {
  const Estimated divided = train({.tp = 2}), ddp = train({.dp = 4, .tp = 2}),
                  fsdp = train({.dp = 4, .tp = 2, .shard = Shard::fsdp2});
  using enum CollectiveKind;
  for (const Estimated* e : {&ddp, &fsdp})
    for (const PhaseKind phase : {PhaseKind::forward, PhaseKind::backward}) {
      const CommunicationRow &one = row(divided.p, "tp", all_reduce, phase), &of = row(e->p, "tp", all_reduce, phase);
      EXPECT_EQ(of.count, one.count);
      EXPECT_EQ(of.bytes, one.bytes);
      EXPECT_EQ(of.time, one.time) << "its neighbours are as near as without replicas";
    }
  EXPECT_EQ(row(ddp.p, "dp", all_reduce, PhaseKind::backward).bytes, divided.e.training.gradients);
  EXPECT_EQ(row(fsdp.p, "dp", reduce_scatter, PhaseKind::backward).bytes, divided.e.training.gradients);
  for (const PhaseKind phase : {PhaseKind::forward, PhaseKind::backward}) {
    const Bytes gathered = row(fsdp.p, "dp", all_gather, phase).bytes;
    EXPECT_LE(gathered, divided.e.training.weights);
    EXPECT_GT(gathered * 1001, divided.e.training.weights * 1000) << "but for the blocks' rounding";
  }
}

/// Behind a unit's backward its gathered weights go, then its gradients are copied for the reduction and go; each
/// weight has a storage of its own. The whole gradients of the rest never lie beside gathered weights and the buffer.
TEST(Mesh, FullyShardReleasesWeightsBeforeItReduces) {
  const Estimated e = train({.dp = 2, .shard = Shard::fsdp2});
  const auto all = e.p.training.storages();
  std::size_t reductions = 0;
  for (const Storage& input : all) {
    if (input.beside != BesideGraph::reduce_scatter_input) continue;
    ++reductions;
    Bytes gradients{};
    for (const Storage& s : all) {
      if (s.scope != input.scope || s.tensor != none) continue;
      const bool there = s.born < input.born || (s.born == input.born && s.comes <= input.comes);
      const bool gone = s.dies < input.born || (s.dies == input.born && s.goes <= input.comes);
      if (s.beside == BesideGraph::gathered_weights) {
        EXPECT_TRUE(!there || gone) << input.scope;
      }
      if (s.beside == BesideGraph::whole_gradients && there && !gone) gradients += s.bytes;
    }
    EXPECT_GE(input.bytes, gradients) << "the flat buffer is filled up";
    EXPECT_LE(input.bytes.value(), gradients.value() + gradients.value() / 100) << "gradients go behind the copy";
  }
  EXPECT_GE(reductions, 9u) << "four layers, four of the tower, and the rest";
}

/// Gradients that come and go between two nodes are in no sample of the curve, and taken out of none.
TEST(Mesh, NoRoleEverHoldsLessThanNothing) {
  const Layout l{.dp = 2, .shard = Shard::fsdp2};
  const Plan plan{.image_height = 224, .image_width = 224, .text = 64, .markers = false};
  Estimator estimator;
  Estimate e = estimator(model(), plan, device(), Phases::train);
  const ParallelEstimate p = estimate_several(estimator, e, plan, device(), l, hosts_of_8(), Phases::train);
  const MemoryCurve curve = memory_curve(estimator.training_graph(), p.training, device(), estimator.allocator);
  ASSERT_FALSE(curve.samples.empty());
  for (const MemorySample& m : curve.samples) {
    Bytes sum{};
    for (const Bytes b : m.by_role) {
      ASSERT_GE(b, Bytes{}) << m.node;
      sum += b;
    }
    ASSERT_LE(sum, m.allocated) << m.node;
  }
}

TEST(Mesh, GroupsTakeTheLinksThatTheySpan) {
  const Network n = hosts_of_8();
  const Bytes all = train({.tp = 4}).e.training.gradients;
  // Four ranks that divide layers, and two replicas of them, fill a host; sixteen GPUs are two hosts.
  EXPECT_GT(time(n, CollectiveKind::all_reduce, all, 4, 4).value,
            5 * time(n, CollectiveKind::all_reduce, all, 2, 4).value);
  const Estimated inside = train({.dp = 2, .tp = 4}), outside = train({.dp = 4, .tp = 4});
  const auto each = [](const Estimated& e, const char* group) {
    const CommunicationRow& r = row(e.p, group, CollectiveKind::all_reduce, PhaseKind::backward);
    return r.time.value;
  };
  EXPECT_GT(each(outside, "dp"), 5 * each(inside, "dp"));
  EXPECT_EQ(each(outside, "tp"), each(inside, "tp"));
}

TEST(Mesh, StagesOfADividedModelAreTheModel) {
  const Bytes weights = train({.tp = 2}).p.ranks.at(0).weights;
  for (const int dp : {1, 2}) {
    const Layout l{.dp = dp, .tp = 2, .pp = 2, .micro_batches = 4};
    const Estimated e = train(l);
    ASSERT_EQ(e.p.ranks.size(), 2u);
    EXPECT_EQ(e.p.ranks[0].ranks, 2 * dp);
    EXPECT_EQ(e.p.ranks[1].rank, 2 * dp) << "ranks of a stage lie next to each other";
    expect_alike(e.p.ranks[0].weights + e.p.ranks[1].weights, weights);
    // Two of the four layers, each sums twice, four times a step.
    EXPECT_EQ(row(e.p, "tp", CollectiveKind::all_reduce, PhaseKind::forward).count, 2 * 2 * 4);
    if (dp > 1) {
      EXPECT_EQ(row(e.p, "dp", CollectiveKind::all_reduce, PhaseKind::backward).count, 1);
    }
  }
}

TEST(Mesh, AStageIsFasterInParts) {
  const Layout whole{.pp = 2, .micro_batches = 4};
  Layout parts = whole;
  parts.tp = 4;
  const Estimated one = train(whole), four = train(parts);
  EXPECT_LT(four.p.ranks[0].weights, one.p.ranks[0].weights);
  EXPECT_GT(four.p.communicated().value, one.p.communicated().value);
  // As many FLOPs in all, on four times as many GPUs.
  EXPECT_NEAR(one.p.tokens_per_second * one.p.step.value, four.p.tokens_per_second * four.p.step.value, 1e-6);
}

/// Experts divided within groups, all else whole, and replicas of that.
TEST(Mesh, ReplicasOfDividedExperts) {
  const std::string name = "internvl3.5-30b-a3b";
  const Estimated alone = train({.ep = 2}, name), fsdp = train({.dp = 2, .ep = 2, .shard = Shard::fsdp2}, name);
  EXPECT_EQ(fsdp.p.ranks.at(0).ranks, 4);
  EXPECT_NEAR(static_cast<double>(fsdp.p.ranks.at(0).optimizer.value()) * 2 /
                  static_cast<double>(alone.p.ranks.at(0).optimizer.value()),
              1, 0.001);
  using enum CollectiveKind;
  const CommunicationRow &one = row(alone.p, "ep", all_reduce, PhaseKind::forward),
                         &of = row(fsdp.p, "ep", all_reduce, PhaseKind::forward);
  EXPECT_EQ(of.count, one.count);
  EXPECT_EQ(of.bytes, one.bytes);
  expect_alike(row(fsdp.p, "dp", reduce_scatter, PhaseKind::backward).bytes, alone.e.training.gradients);
  EXPECT_THROW(train({.dp = 2, .ep = 2}, name), Error) << "DistributedDataParallel does not run so";
}

TEST(Mesh, WhatCannotBeRunIsRefused) {
  EXPECT_EQ(refused({.dp = 2, .tp = 2, .pp = 2}), "");
  EXPECT_EQ(refused({.dp = 2, .tp = 2, .shard = Shard::fsdp2}), "");
  for (const Shard s : {Shard::zero1, Shard::zero2, Shard::zero3})
    EXPECT_EQ(refused({.dp = 2, .tp = 2, .shard = s}), "layout.shard") << name(s);
  EXPECT_EQ(refused({.dp = 2, .ep = 2}), "");
  EXPECT_EQ(refused({.dp = 2, .ep = 2, .shard = Shard::zero2}), "layout.shard");
  EXPECT_EQ(refused({.pp = 2, .ep = 2}), "layout.mesh");
  EXPECT_EQ(refused({.dp = 2, .pp = 2, .shard = Shard::zero1}), "layout.shard");
}

/// What docs/howto/several-gpus.md says of these ranks.
TEST(Mesh, RecordedRanks) {
  const auto recorded =
      nlohmann::json::parse(std::ifstream(std::string(VLMEST_SOURCE_DIR) + "/tests/data/several_gpus/mesh.json"));
  ASSERT_GE(recorded.at("runs").size(), 11u);
  for (const auto& run : recorded.at("runs")) {
    const std::string name = run.at("model");
    const Layout l{.dp = run.at("dp"),
                   .tp = run.at("tp"),
                   .shard = Shard::fsdp2,
                   .reshard_after_forward = run.at("reshard").get<bool>()};
    Plan plan{.batch = run.at("batch"), .text = run.at("text"), .markers = false};
    plan.images = run.contains("side") ? 1 : 0;
    if (plan.images > 0) plan.image_height = plan.image_width = run.at("side").get<std::int64_t>();
    if (run.at("ckpt").get<bool>()) plan.checkpointing = Checkpointing::full;
    plan.shards = layer_shards(l);
    Estimator estimator;
    Estimate e = estimator(model(name), plan, device(), Phases::train);
    ASSERT_EQ(e.sequences.seq, run.at("seq").get<std::int64_t>()) << name;
    const RankEstimate rank =
        estimate_several(estimator, e, plan, device(), l, hosts_of_8(), Phases::train).ranks.at(0);
    const auto off = [&](Bytes estimated, const char* what) {
      return static_cast<double>(estimated.value()) / run.at(what).get<double>() - 1;
    };
    const std::string of = name + " dp " + std::to_string(l.dp) + " tp " + std::to_string(l.tp);
    EXPECT_NEAR(off(rank.weights, "weights"), 0, 0.0025) << of << ", with what is left of blocks";
    EXPECT_NEAR(off(rank.gradients, "gradients"), 0, 0.001) << of;
    EXPECT_NEAR(off(rank.optimizer, "optimizer"), 0, 0.001) << of;
    EXPECT_NEAR(off(rank.forward, "forward"), 0, 0.007) << of;
    EXPECT_NEAR(off(rank.backward, "backward"), 0, 0.007) << of;
    EXPECT_NEAR(off(rank.step, "step"), 0, 0.0075) << of;
  }
}

}  // namespace
}  // namespace vlmest::parallel::mesh_test
