// SPDX-License-Identifier: Apache-2.0
// Curves of collectives, fitted to what was measured of them.
#include <utility>
#include <vector>

#include <bench/fit/fit_network.hpp>
#include <gtest/gtest.h>

namespace vlmest::network_fit_test {
namespace {

using parallel::CollectiveKind;
using parallel::MeasuredCollective;

TEST(FitNetwork, CurvesGrow) {
  const parallel::Network one_link{
      .name = "link",
      .domains = {
          {.name = "host", .gpus = 2, .bandwidth = {1e9}, .launch = {1e-6}, .hop = {}, .channels = 1, .curves = {}}}};
  std::vector<MeasuredCollective> m;
  for (const auto& [bytes, us] : {std::pair{2048, 5.0}, {1024, 6.0}, {4096, 9.0}, {3072, 8.0}})
    m.push_back({CollectiveKind::send, 2, Bytes(bytes), {us * 1e-6}});
  const std::vector<fit::FittedCurve> c = fit::curves(m, one_link);
  ASSERT_EQ(c.size(), 1u);
  ASSERT_EQ(c[0].curve.points.size(), 3u);
  EXPECT_DOUBLE_EQ(c[0].curve.points[1].time.us(), 6.0) << "no less than fewer bytes";
  EXPECT_EQ(c[0].held_out.small.points, 1);
  EXPECT_NEAR(c[0].held_out.small.mean(), 0.5 / 8, 1e-9);
  EXPECT_EQ(c[0].before.small.points, 4);
}

}  // namespace
}  // namespace vlmest::network_fit_test
