// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include <bench/fit/fit_device.hpp>
#include <gtest/gtest.h>

namespace {

using namespace vlmest;

Device device() {
  Device d;
  d.sm = 90;
  d.multiprocessors = 132;
  d.dram = {4.8e12};
  d.l2 = Bytes(60 << 20);
  d.peaks = {{66.9e12}, {494.7e12}, {989.4e12}, {989.4e12}, {1978.9e12}, {1978.9e12}};
  return d;
}

/// Sizes between 2^low and 2^high, log-uniform, multiples of `of`.
class Sizes {
 public:
  std::int64_t operator()(double low, double high, std::int64_t of = 1) {
    const double x = std::exp2(std::uniform_real_distribution<double>(low, high)(random_));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(x) / of) * of;
  }
  double noise(double deviation) { return std::exp(std::normal_distribution<double>(0, deviation)(random_)); }

 private:
  std::mt19937 random_{7};
};

Matmul product(Sizes& s) { return {.m = s(0, 15), .n = s(6, 14, 8), .k = s(6, 14, 8)}; }

TEST(FitMatmul, FindsTheParametersOfMadeUpTimes) {
  const Device d = device();
  MatmulEfficiency truth;
  truth.rate = 0.7;
  truth.bandwidth = 0.8;
  truth.start = {3.1e-6};
  truth.epilogue = {6e-11};
  Sizes sizes;
  std::vector<fit::MatmulSample> samples;
  for (int i = 0; i < 120; ++i) {
    const Matmul o = product(sizes);
    samples.push_back({o, matmul_time(o, d, truth).time * sizes.noise(0.01)});
  }
  const MatmulEfficiency found = fit::fit_matmul(samples, d);
  EXPECT_NEAR(found.rate, truth.rate, 0.02);
  EXPECT_NEAR(found.bandwidth, truth.bandwidth, 0.04);
  EXPECT_NEAR(found.start.us(), truth.start.us(), 0.2);
  EXPECT_TRUE(found.correction.empty());
}

TEST(FitMatmul, ACorrectionFollowsWhatTheFormDoesNot) {
  const Device d = device();
  Sizes sizes;
  // Products with a long inner dimension take a fifth longer than the form says.
  const auto real = [&](const Matmul& o) {
    return matmul_time(o, d, MatmulEfficiency{}).time * (1 + 0.2 * std::log2(static_cast<double>(o.k)) / 14);
  };
  std::vector<fit::MatmulSample> samples;
  for (int i = 0; i < 2000; ++i) {
    const Matmul o = product(sizes);
    samples.push_back({o, real(o)});
  }
  const MatmulEfficiency found = fit::fit_matmul(samples, d);
  ASSERT_FALSE(found.correction.empty());
  double error = 0;
  for (int i = 0; i < 200; ++i) {
    const Matmul o = product(sizes);
    error += std::abs(matmul_time(o, d, found).time.value / real(o).value - 1) / 200;
  }
  EXPECT_LT(error, 0.02);
}

TEST(FitMatmul, AFewPointsFarOffDoNotBendTheCorrection) {
  const Device d = device();
  Sizes sizes;
  std::vector<fit::Ratio<3>> ratios;
  for (int i = 0; i < 1000; ++i) {
    const Matmul o = product(sizes);
    ratios.push_back({{static_cast<double>(o.m), static_cast<double>(o.n), static_cast<double>(o.k)}, 0.1});
    if (i % 20 == 0) ratios.back().log_ratio = 1;  // twice as long and more
  }
  const std::vector<double> knots = fit::knots(0, 15, 2);
  const Correction<3> c = fit::fit_correction<3>({knots, knots, knots}, ratios, 0.1, 0.05);
  EXPECT_NEAR(std::log(c({300, 1000, 1000})), 0.1, 0.02);
}

TEST(FitAttention, FindsTheTimesOfMadeUpSteps) {
  const Device d = device();
  AttentionEfficiency truth;
  truth.step64 = {0.9e-6};
  truth.step128 = {1.3e-6};
  truth.longest = 0.6;
  Sizes sizes;
  std::vector<fit::AttentionSample> samples;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t head = i % 3 == 0 ? 64 : 128, length = sizes(6, 14);
    const Attention o{.batch = sizes(0, 3),
                      .heads = 16,
                      .kv_heads = 16,
                      .q_len = length,
                      .kv_len = length,
                      .head_dim = head,
                      .v_dim = head,
                      .causal = i % 2 == 0};
    samples.push_back({o, attention_time(o, d, truth).time});
  }
  const AttentionEfficiency found = fit::fit_attention(samples, d);
  EXPECT_NEAR(found.step64.us(), 0.9, 0.02);
  EXPECT_NEAR(found.step128.us(), 1.3, 0.02);
  EXPECT_NEAR(found.longest, 0.6, 0.03);
}

TEST(FitAttention, BeginsWithParametersThatAreNothing) {
  const Device d = device();
  AttentionEfficiency first;
  first.combine = {};
  Sizes sizes;
  std::vector<fit::AttentionSample> samples;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t length = sizes(8, 14);
    const Attention o{.heads = 16, .kv_heads = 16, .q_len = length, .kv_len = length, .head_dim = 128, .v_dim = 128};
    samples.push_back({o, attention_time(o, d, AttentionEfficiency{}).time});
  }
  const AttentionEfficiency found = fit::fit_attention(samples, d, first);
  EXPECT_NEAR(found.step128.us(), AttentionEfficiency{}.step128.us(), 0.02);
  EXPECT_LT(found.combine.us(), 0.01);
}

TEST(FitMemory, FindsBandwidthStartAndElementTime) {
  const Device d = device();
  const MemoryEfficiency truth{{1.7e-6}, 0.85, 1.3, {3e-12}};
  Sizes sizes;
  std::vector<fit::MemorySample> samples;
  for (int i = 0; i < 200; ++i) {
    // Of every second op the elements are wide, so that the bytes decide.
    const std::int64_t elements = sizes(10, 27), bytes = elements * (i % 2 == 0 ? 4 : 32);
    samples.push_back({Bytes(bytes), Elements(elements), 1, {}});
    samples.back().time = memory_time(Bytes(bytes), Elements(elements), 1, d, truth).time;
  }
  const MemoryEfficiency found = fit::fit_memory(samples, d);
  EXPECT_NEAR(found.start.us(), 1.7, 0.05);
  EXPECT_NEAR(found.bandwidth, 0.85, 0.02);
  EXPECT_NEAR(found.cached, 1.3, 0.05);
  EXPECT_NEAR(found.element.value * 1e12, 3, 0.1);
}

TEST(Calibrate, FitsEachKindAndReportsWhatItHeldOut) {
  Device d = device(), real = d;
  real.efficiency.half.bytes16.rate = 0.6;
  real.efficiency.memory.contiguous.bandwidth = 0.7;
  Sizes sizes;
  std::vector<MeasuredOp> measured;
  const auto add = [&](const Op& op, bool cold, const char* variant) {
    MeasuredOp m{.name = "made up", .variant = variant, .op = op, .cold = cold};
    m.time_us = op_time(op, real).time.us();
    measured.push_back(m);
  };
  for (int i = 0; i < 200; ++i) add(product(sizes), true, "cublaslt");
  for (int i = 0; i < 200; ++i) add(product(sizes), false, "cublaslt");  // from the cache: not for products
  for (int i = 0; i < 50; ++i) {
    const Bytes n(sizes(10, 31));
    add(MemoryOp{.read = n, .written = n}, false, "own");
  }
  const fit::Calibration c = fit::calibrate(measured, d);
  ASSERT_EQ(c.errors.size(), 2u);
  EXPECT_EQ(c.errors[0].kind, "half.bytes16");
  EXPECT_EQ(c.errors[0].fitted, 160u);
  EXPECT_EQ(c.errors[0].held_out, 40u);
  EXPECT_LT(c.errors[0].held_out_error, 0.03);
  EXPECT_EQ(c.errors[1].kind, "memory.contiguous");
  EXPECT_LT(c.errors[1].held_out_error, 0.03);
  EXPECT_NEAR(c.efficiency.half.bytes16.rate, 0.6, 0.03);
  EXPECT_NEAR(c.efficiency.memory.contiguous.bandwidth, 0.7, 0.02);
  EXPECT_EQ(c.efficiency.half.bytes4.rate, d.efficiency.half.bytes4.rate);
}

TEST(Correction, IsLinearBetweenItsKnotsAndFlatBeyondThem) {
  const Correction<2> c{{std::vector<double>{0, 2}, std::vector<double>{0, 1, 3}},
                        {0, 0, 0, std::log(2.0), std::log(2.0), std::log(2.0)}};
  EXPECT_DOUBLE_EQ(c({1, 1}), 1);
  EXPECT_DOUBLE_EQ(c({4, 5}), 2);
  EXPECT_NEAR(c({2, 3}), std::sqrt(2.0), 1e-12);
  EXPECT_DOUBLE_EQ(c({1000, 1000}), 2);
  EXPECT_DOUBLE_EQ((Correction<2>{}({3, 3})), 1);
}

}  // namespace
