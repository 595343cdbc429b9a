// SPDX-License-Identifier: Apache-2.0
// Where states live: what each strategy leaves of them on a GPU.
#include <gtest/gtest.h>

#include <vlmest/parallel/placement.hpp>

namespace vlmest::parallel::placement_test {
namespace {

void expect(const Strategy& s, std::int64_t weights, std::int64_t gradients, std::int64_t optimizer) {
  const Shares r = shares(s);
  EXPECT_EQ(r.weights, weights);
  EXPECT_EQ(r.gradients, gradients);
  EXPECT_EQ(r.optimizer, optimizer);
}

TEST(Placement, StagesDivideMoreAndMore) {
  expect({.gpus = 8}, 1, 1, 1);
  expect({.gpus = 8, .sharding = Sharding::optimizer}, 1, 1, 8);
  expect({.gpus = 8, .sharding = Sharding::gradients}, 8, 8, 8);
  expect({.gpus = 8, .sharding = Sharding::parameters}, 8, 8, 8);
  expect({.gpus = 1, .sharding = Sharding::parameters}, 1, 1, 1);
}

TEST(Placement, WhatLiesElsewhereTakesNothing) {
  expect({.gpus = 2, .bucket_views = true}, 1, 0, 1);
  expect({.gpus = 1, .bucket_views = true}, 1, 1, 1);
  expect({.gpus = 2, .sharding = Sharding::gradients, .bucket_views = true}, 2, 2, 2);
  expect({.offload = Offload::optimizer}, 1, 1, 0);
  expect({.gpus = 4, .sharding = Sharding::parameters, .offload = Offload::parameters}, 0, 0, 0);
}

TEST(Placement, TheHostsStatesAreDividedToo) {
  const Strategy s{.gpus = 4, .sharding = Sharding::optimizer, .offload = Offload::optimizer};
  EXPECT_EQ(placements(s).optimizer.holder, Holder::host);
  EXPECT_EQ(parts(placements(s).optimizer, mesh(s)), 4);
  EXPECT_EQ(parts(placements(s).weights, mesh(s)), 1);
}

TEST(Placement, AMeshHasReplicasOrShards) {
  EXPECT_EQ(mesh({.gpus = 8, .sharding = Sharding::optimizer}).dp_replicate, 8);
  EXPECT_EQ(mesh({.gpus = 8, .sharding = Sharding::optimizer}).dp_shard, 1);
  EXPECT_EQ(mesh({.gpus = 8, .sharding = Sharding::gradients}).dp_replicate, 1);
  EXPECT_EQ(mesh({.gpus = 8, .sharding = Sharding::gradients}).dp_shard, 8);
}

}  // namespace
}  // namespace vlmest::parallel::placement_test
