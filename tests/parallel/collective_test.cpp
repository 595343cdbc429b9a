// SPDX-License-Identifier: Apache-2.0
// Collectives in a ring: traffic against the counts of steps, time of several.
#include <vector>

#include <gtest/gtest.h>

#include <vlmest/parallel/collective.hpp>

namespace vlmest::parallel::collective_test {
namespace {

TEST(Collective, ARingSendsAPartInEachStep) {
  for (const int n : {1, 2, 3, 8, 1024}) {
    const int steps = n - 1;
    for (const auto kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
      EXPECT_DOUBLE_EQ(traffic(kind, n), steps * (1.0 / n)) << n;
    EXPECT_DOUBLE_EQ(traffic(CollectiveKind::all_reduce, n), 2 * steps * (1.0 / n)) << "it scatters sums, then gathers";
  }
}

TEST(Collective, OneRankSendsNothing) {
  const std::vector<Collective> all{{CollectiveKind::all_gather, Dimension::dp_shard, Bytes(1 << 30)}};
  EXPECT_EQ(time(all, Mesh{.dp_replicate = 8}, Bandwidth{1e9}), Seconds{});
  EXPECT_EQ(time(all, Mesh{}, Bandwidth{}), Seconds{}) << "not even where no link is known";
}

TEST(Collective, EachGroupHasItsRanks) {
  const std::vector<Collective> all{{CollectiveKind::all_reduce, Dimension::dp_replicate, Bytes(1000)},
                                    {CollectiveKind::all_gather, Dimension::dp_shard, Bytes(100)},
                                    {CollectiveKind::all_gather, Dimension::dp_shard, Bytes(300)}};
  EXPECT_DOUBLE_EQ(time(all, Mesh{.dp_replicate = 2, .dp_shard = 4}, Bandwidth{1}).value, 1000 + 400 * 0.75);
}

}  // namespace
}  // namespace vlmest::parallel::collective_test
