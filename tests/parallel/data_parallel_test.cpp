// SPDX-License-Identifier: Apache-2.0
// A training step on several GPUs: what is sent, what that allocates, and how long the step takes.
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/parallel/buffers.hpp>
#include <vlmest/parallel/step_time.hpp>

namespace vlmest::parallel::data_parallel_test {
namespace {

constexpr Bytes root(10), first(100), second(200), adapter(20);

/// An embedding of the root, and two layers with a module each, of which the second one's is trained; a module of the
/// root is one of a sequence, but no layer.
Graph model() {
  Graph g;
  g.scopes.resize(7);
  for (const ScopeId layer : {2, 3}) g.scopes[static_cast<std::size_t>(layer)].parent = 1;
  g.scopes[1].parent = 0;
  g.scopes[2].index = 0;
  g.scopes[3].index = 1;
  g.scopes[4].parent = 3;
  g.scopes[5].parent = 2;
  g.scopes[6].parent = 0;
  g.scopes[6].index = 0;
  return g;
}
ModelStates states() {
  return {units_of_scopes(model()), {root, {}, first, second, {}, {}, {}}, {root, {}, {}, adapter, {}, {}, {}}, 3};
}
StepCollectives sent(Strategy s) { return collectives(s, states()); }
std::vector<CollectiveKind> kinds(const std::vector<Collective>& all) {
  std::vector<CollectiveKind> r;
  for (const Collective& c : all) r.push_back(c.kind);
  return r;
}

TEST(DataParallel, UnitsAreLayersAndTheRest) {
  EXPECT_EQ(states().unit_of, (std::vector<ScopeId>{0, 0, 2, 3, 3, 2, 0}));
}

TEST(DataParallel, WhatALayerIsCalledWithIsOfTheTypeThatItIsGatheredIn) {
  Graph g = model();
  g.tensors = {{.dtype = DType::bf16, .role = Role::weight}, {.dtype = DType::fp32, .role = Role::activation}};
  g.phases = {{.kind = PhaseKind::forward, .first = 0, .last = 2}};
  g.nodes.resize(2);
  g.nodes[0] = {.scope = 0, .first_edge = 0, .outputs = 1};
  g.nodes[1] = {.scope = 4, .first_edge = 1, .inputs = 1};
  g.edges = {1, 1};
  const std::vector<ScopeId> units = units_of_scopes(g);
  EXPECT_NO_THROW(check_cast(g, units)) << "nothing is cast";
  g.kept_dtype = DType::fp32;
  EXPECT_THROW(check_cast(g, units), Error);
  g.nodes[0].scope = 3;
  EXPECT_NO_THROW(check_cast(g, units)) << "the layer has made it itself";
  g.nodes[0].scope = 5;
  EXPECT_THROW(check_cast(g, units), Error) << "the layer before has";
  g.tensors[1].dtype = DType::bf16;
  EXPECT_NO_THROW(check_cast(g, units));
}

TEST(DataParallel, ReplicasAddGradientsUpOnceAStep) {
  const StepCollectives ddp = sent({.gpus = 2}), zero1 = sent({.gpus = 2, .sharding = Sharding::optimizer});
  EXPECT_TRUE(ddp.every_pass.empty());
  EXPECT_EQ(kinds(ddp.last_pass), std::vector{CollectiveKind::all_reduce});
  EXPECT_EQ(ddp.last_pass[0].bytes, root + adapter);
  EXPECT_TRUE(ddp.after.empty());
  EXPECT_EQ(kinds(zero1.after), std::vector{CollectiveKind::all_gather}) << "what others have updated";
  EXPECT_TRUE(sent({.gpus = 1}).last_pass.empty());
}

TEST(DataParallel, ShardsAreGatheredAndReducedByUnits) {
  using enum CollectiveKind;
  const StepCollectives keep = sent({.gpus = 2, .sharding = Sharding::gradients}),
                        again = sent({.gpus = 2, .sharding = Sharding::parameters});
  EXPECT_EQ(kinds(keep.every_pass), (std::vector{all_gather, all_gather, all_gather, reduce_scatter, reduce_scatter}));
  EXPECT_EQ(kinds(again.every_pass), (std::vector{all_gather, all_gather, all_gather, all_gather, all_gather,
                                                  all_gather, reduce_scatter, reduce_scatter}));
  EXPECT_TRUE(keep.last_pass.empty() && keep.after.empty());
}

TEST(DataParallel, BuffersHoldWhatIsSent) {
  Graph g = model();
  const ModelStates all = states();
  const auto buckets = data_parallel_storages(g, {.gpus = 2}, all, sent({.gpus = 2}));
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].bytes, root + adapter);
  EXPECT_EQ(buckets[0].role, Role::buffer);
  EXPECT_TRUE(data_parallel_storages(g, {}, all, sent({})).empty());
}

/// A device whose links take a second for each byte, beside a host that takes no time.
Device device() {
  Device d;
  d.host_link = {1};
  d.ddp_parameter = d.fsdp_module = {};
  d.optimizer_parameter = d.optimizer_shard = {};
  return d;
}
/// Of a step of which the optimizer takes a tenth.
double seconds(const Strategy& s, std::int64_t micro_batches = 1, double step = 1000) {
  TrainingEstimate whole;
  whole.micro_batches = micro_batches;
  whole.wall = {step};
  whole.step_wall = {step / 10};
  return step_time(s, states(), sent(s), whole, device()).value;
}

TEST(DataParallel, CollectivesAreHiddenByPassesThatTakeLonger) {
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2}), 1000);
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2}, 1, 0), 30) << "(10 + 20) bytes, twice a half";
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2}, 4, 0), 30) << "in the last backward alone";
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2, .sharding = Sharding::gradients}, 1, 0), 155 + 15);
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2, .sharding = Sharding::parameters}, 4, 0), 4 * (2 * 155 + 15));
}

TEST(DataParallel, ShardsAreUpdatedByTheirGpus) {
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2, .sharding = Sharding::gradients}), 900 + 50);
  EXPECT_DOUBLE_EQ(seconds({.gpus = 2, .sharding = Sharding::optimizer}), 900 + 50 + 15)
      << "what follows is not hidden";
}

TEST(DataParallel, TheHostsLinkIsABottleneckToo) {
  const Strategy s{.gpus = 1, .offload = Offload::parameters};
  EXPECT_DOUBLE_EQ(seconds(s, 2, 0), 2 * 2 * 310) << "weights twice a micro-batch";
  EXPECT_DOUBLE_EQ(seconds({.gpus = 1, .offload = Offload::optimizer}, 1, 0), 30 + 30) << "there, and back again";
}

}  // namespace
}  // namespace vlmest::parallel::data_parallel_test
