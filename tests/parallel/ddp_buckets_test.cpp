// SPDX-License-Identifier: Apache-2.0
// DistributedDataParallel's buckets: how they are filled, when they are made anew, and gradients as views of them.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/allocator/process.hpp>
#include <vlmest/nn/trainable.hpp>
#include <vlmest/parallel/data_parallel_timeline.hpp>
#include <vlmest/report/estimate.hpp>
#include <vlmest/report/replay.hpp>

#include "files.hpp"

namespace vlmest::parallel::ddp_buckets_test {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

/// Weights of so many MiB, the last of another type.
Graph weights(const std::vector<std::int64_t>& sizes) {
  Graph g;
  g.scopes.resize(1);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Tensor t;
    t.role = Role::weight;
    t.dtype = i + 1 == sizes.size() ? DType::fp32 : DType::bf16;
    t.storage = Elements(sizes[i] * mib / (t.dtype == DType::fp32 ? 4 : 2));
    g.tensors.push_back(t);
  }
  return g;
}
std::vector<std::int64_t> filled(const Graph& g, const std::vector<TensorId>& order) {
  std::vector<std::int64_t> r;
  for (const Bucket& b : fill_buckets(g, order, Bytes(mib), Bytes(25 * mib))) r.push_back(b.bytes.value() / mib);
  return r;
}

TEST(DdpBuckets, CloseWhenTheyHoldTheirLimit) {
  const Graph g = weights({2, 20, 4, 10, 16, 7, 3, 5});
  EXPECT_EQ(filled(g, {0, 1, 2, 3, 4, 5}), (std::vector<std::int64_t>{2, 34, 23})) << "the first one at 1 MiB";
  EXPECT_EQ(filled(g, {1, 0, 2, 3, 4, 5}), (std::vector<std::int64_t>{20, 32, 7}));
  EXPECT_EQ(filled(g, {0, 7, 1, 2, 6}), (std::vector<std::int64_t>{2, 5, 27})) << "each type has a first one";
  EXPECT_TRUE(filled(g, {}).empty());
}

const Device& device() {
  static const Device d = tool::find_device("h100-sxm");
  return d;
}
/// A training step on two GPUs.
struct Step {
  Plan plan{.image_height = 224, .image_width = 224, .text = 64};
  Estimator estimator;
  explicit Step(std::int64_t micro_batches = 1, const std::string& name = "internvl3-1b") {
    plan.gradient_accumulation = micro_batches;
    estimator(tool::find_model(name), plan, device(), Phases::train);
  }
  Timeline timeline(bool views = false) {
    const Graph& g = estimator.training_graph();
    const auto is_trained = [&](const Tensor& t) { return trains(plan, g, t); };
    return data_parallel_timeline(g, estimator.training_timeline(), {.gpus = 2, .bucket_views = views},
                                  model_states(g, is_trained), trained_weights(g, is_trained), device().usable_bytes);
  }
};

Bytes sum(const std::vector<Bytes>& all) {
  Bytes r{};
  for (const Bytes b : all) r += b;
  return r;
}

TEST(DdpBuckets, ThoseOfTheSecondStepHoldWhatTheFirstOneDoes) {
  Step step;
  const Timeline t = step.timeline();
  Bytes first{};
  for (const Storage& s : t.storages())
    if (s.beside == BesideGraph::gradient_bucket) first += s.bytes;
  const RankSetUp& up = t.set_up();
  EXPECT_EQ(sum(up.buckets), first);
  ASSERT_GT(up.buckets.size(), 20u);
  EXPECT_GE(up.buckets.front(), Bytes(mib));
  for (std::size_t i = 1; i + 1 < up.buckets.size(); ++i) EXPECT_GE(up.buckets[i], Bytes(25 * mib)) << i;
}

TEST(DdpBuckets, WeightsAreSentInFlatCopies) {
  Step step;
  const RankSetUp up = step.timeline().set_up();
  const Bytes weights = weight_bytes(step.estimator.training_graph()).all;
  EXPECT_LE(sum(up.sent), weights);
  EXPECT_GT(sum(up.sent) * 10, weights * 9);
  for (std::size_t i = 0; i + 1 < up.sent.size(); ++i) EXPECT_GE(up.sent[i], Bytes(250 * mib)) << i;
}

/// Where the second step begins, the one bucket goes and the others come, which find room in it.
TEST(DdpBuckets, AreMadeAnewOnce) {
  Step step;
  const Timeline t = step.timeline();
  const Graph& g = step.estimator.training_graph();
  allocator::Process process(g, t, device().sm);
  process.load();
  const Bytes loaded = process.allocator().allocated();
  process.set_up();
  const Bytes up = process.allocator().allocated(), reserved = process.allocator().reserved();
  EXPECT_GE(up - loaded, sum(t.set_up().buckets));
  process.rebuild_buckets();
  const Bytes rebuilt = process.allocator().allocated();
  EXPECT_EQ(process.allocator().reserved(), reserved);
  EXPECT_GE(rebuilt, loaded + sum(t.set_up().buckets));
  EXPECT_LE((rebuilt - up).value(), static_cast<std::int64_t>(t.set_up().buckets.size()) * mib);
  process.rebuild_buckets();
  EXPECT_EQ(process.allocator().allocated(), rebuilt) << "nothing more";
}

Bytes alive(const Timeline& t, NodeId n) {
  Bytes r{};
  for (const Storage& s : t.storages())
    if (s.beside == BesideGraph::whole_gradients && s.born <= n && s.dies > n) r += s.bytes;
  return r;
}

/// A gradient is a tensor of its own until its bucket has it: in the last backward for one node alone, with no_sync
/// until then.
TEST(DdpBuckets, ViewsTakeGradientsInTheLastBackward) {
  Step one, two(2);
  const Timeline single = one.timeline(true), several = two.timeline(true);
  Bytes gradients{}, most{};
  for (const Storage& s : single.storages()) {
    EXPECT_TRUE(s.role != Role::gradient || s.bytes == Bytes{});
    if (s.beside == BesideGraph::whole_gradients) gradients += s.bytes;
  }
  const std::vector<Phase>& phases = one.estimator.training_graph().phases;
  for (NodeId n = phases[1].first; n < phases[1].last; ++n) most = std::max(most, alive(single, n));
  EXPECT_NEAR(static_cast<double>(gradients.value()) / static_cast<double>(sum(single.set_up().buckets).value()), 1,
              0.002)
      << "but for a gradient that is a view of more";
  EXPECT_LT(most * 2, gradients) << "no more than the largest";
  const Graph& g = two.estimator.training_graph();
  EXPECT_EQ(alive(several, g.phases[2].first), gradients) << "between the backwards all of them";
  EXPECT_EQ(alive(several, g.phases.back().first), Bytes{});
}

}  // namespace
}  // namespace vlmest::parallel::ddp_buckets_test
