// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/leak.hpp>

namespace vlmest::leak_test {
namespace {

using namespace diagnose;

constexpr double mib = 1 << 20;

/// Numbers in [-1, 1), the same in every run.
class Noise {
 public:
  double operator()() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1u << 23) - 1;
  }

 private:
  std::uint64_t state_ = 42;
};

template <class F>
Points curve(int n, F f) {
  Points p;
  for (int i = 0; i < n; ++i) p.emplace_back(i, f(i));
  return p;
}

TEST(Leak, AStraightLineAndItsEnd) {
  const auto r = find_leak(curve(200, [](int i) { return 1000 * mib + 3 * mib * i; }), Bytes(std::int64_t{4000} << 20));
  EXPECT_EQ(name(r.growth), "growing");
  EXPECT_NEAR(r.bytes_per_step, 3 * mib, 1);
  ASSERT_TRUE(r.end_step);
  EXPECT_NEAR(*r.end_step, 1000, 0.01);
}

TEST(Leak, UnderNoiseTheSlopeIsFound) {
  Noise noise;
  const auto r = find_leak(curve(400, [&](int i) { return 8000 * mib + 2 * mib * i + 150 * mib * noise(); }),
                           Bytes(std::int64_t{20000} << 20));
  EXPECT_TRUE(r.is_leak());
  EXPECT_NEAR(r.bytes_per_step, 2 * mib, 0.3 * mib);
  // Peaks reach the capacity before the trend does: at (20000 - 8000 - 150) / 2.
  EXPECT_NEAR(*r.end_step, 5925, 700);
}

TEST(Leak, PeaksDoNotDecide) {
  Noise noise;
  const auto r = find_leak(curve(300, [&](int i) {
    return 8000 * mib + 100 * mib * noise() + (i % 50 == 49 ? 9000 * mib : 0);  // an evaluation now and then
  }));
  EXPECT_EQ(name(r.growth), "flat");
}

TEST(Leak, WarmUpAndPlateausAreNone) {
  EXPECT_EQ(name(find_leak(curve(200, [](int i) { return i < 20 ? 100 * mib * i : 2000 * mib; })).growth), "flat");
  EXPECT_EQ(name(find_leak(curve(200, [](int) { return 5 * mib; })).growth), "flat");
  // Growth that stops in the middle of the last half.
  const auto r = find_leak(curve(200, [](int i) { return 1000 * mib + mib * std::min(i, 150); }));
  EXPECT_FALSE(r.is_leak());
}

TEST(Leak, CachesThatFillAreSettling) {
  const auto r = find_leak(curve(300, [](int i) { return 4000 * mib * (1 - std::exp(-i / 50.0)); }));
  EXPECT_EQ(name(r.growth), "settling");
  EXPECT_FALSE(r.end_step);
}

TEST(Leak, GrowthInJumpsCounts) {
  const auto r =
      find_leak(curve(400, [](int i) { return 1000 * mib + 100 * mib * (i / 40); }), Bytes(std::int64_t{3000} << 20));
  EXPECT_TRUE(r.is_leak());
  EXPECT_NEAR(r.bytes_per_step, 2.5 * mib, 0.5 * mib);
}

TEST(Leak, ShrinkingAndRandomWalksOfNoiseAreNone) {
  EXPECT_FALSE(find_leak(curve(200, [](int i) { return 5000 * mib - mib * i; })).is_leak());
  int leaks = 0;
  for (int run = 0; run < 200; ++run) {
    Noise noise;
    for (int k = 0; k < run * 31; ++k) noise();
    leaks += find_leak(curve(100, [&](int) { return 5000 * mib + 500 * mib * noise(); })).is_leak();
  }
  EXPECT_LE(leaks, 2);
}

TEST(Leak, FewOrBrokenPoints) {
  EXPECT_EQ(name(find_leak({}).growth), "too_few");
  EXPECT_EQ(name(find_leak(curve(11, [](int i) { return i * mib; })).growth), "too_few");
  EXPECT_EQ(find_leak(curve(100, [](int) { return std::nan(""); })).points, 0u);
}

TEST(Leak, ManyPointsAreThinnedToTheSameSlope) {
  const auto r = find_leak(curve(200000, [](int i) { return 1e9 + 1000.0 * i; }));
  EXPECT_TRUE(r.is_leak());
  EXPECT_NEAR(r.bytes_per_step, 1000, 1e-6);
}

TEST(Trend, TheilSenAndMannKendall) {
  // Slopes of the pairs of (0,0) (1,1) (2,100) (3,3): 1, 50, 1, 99, 1, -97; their median is 1.
  const auto t = trend({{0, 0}, {1, 1}, {2, 100}, {3, 3}});
  EXPECT_EQ(t.slope, 1);
  EXPECT_EQ(t.level, 0);
  EXPECT_EQ(t.noise, 0);
  EXPECT_NEAR(t.z, (4 - 1) / std::sqrt(4.0 * 3 * 13 / 18), 1e-12);
}

}  // namespace
}  // namespace vlmest::leak_test
