// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include <bench/fit/fit_ceilings.hpp>
#include <bench/fit/fit_device.hpp>
#include <gtest/gtest.h>

namespace vlmest::fit_test {
namespace {

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

TEST(FitFewRows, FindsTheParametersOfMadeUpTimes) {
  const Device d = device();
  FewRowsEfficiency truth;
  truth.two = {6e-9};
  truth.row = {2e-9};
  truth.blocks = {6e-6};
  truth.bandwidth = 0.4;
  Sizes sizes;
  std::vector<fit::MatmulSample> samples;
  while (samples.size() < 600) {
    const Matmul o{.m = sizes(0, 3), .n = sizes(6, 14) | 1, .k = sizes(6, 14)};
    if (few_rows::runs(o)) samples.push_back({o, few_rows::time(o, d, truth).time * sizes.noise(0.01)});
  }
  const FewRowsEfficiency found = fit::fit_few_rows(samples, d);
  EXPECT_NEAR(found.two.value, truth.two.value, 0.05 * truth.two.value);
  EXPECT_NEAR(found.row.value, truth.row.value, 0.05 * truth.row.value);
  EXPECT_NEAR(found.blocks.value, truth.blocks.value, 0.05 * truth.blocks.value);
  EXPECT_NEAR(found.bandwidth, truth.bandwidth, 0.02);
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

/// Attention of as many queries as keys, or of one query.
Attention attention(Sizes& s, std::int64_t head, bool one = false) {
  const std::int64_t length = s(6, 14), groups = s(0, 3);
  return {.batch = s(0, one ? 6 : 3),
          .heads = 8 * groups,
          .kv_heads = 8,
          .q_len = one ? 1 : length,
          .kv_len = length,
          .head_dim = head,
          .v_dim = head};
}

TEST(FitAttention, FindsTheTimesOfMadeUpSteps) {
  const Device d = device();
  AttentionEfficiency truth;
  truth.step64 = {0.9e-6};
  truth.step128 = {1.3e-6};
  truth.longest = 0.6;
  truth.ragged = {0.3e-6};
  truth.mask128 = {2e-6};
  truth.mask_odd = {3e-6};
  Sizes sizes;
  std::vector<fit::AttentionSample> samples;
  for (int i = 0; i < 400; ++i) {
    Attention o = attention(sizes, i % 3 == 0 ? 64 : 128);
    o.causal = i % 2 == 0;
    if (i % 8 == 1) o.mask = Bytes(2 * o.q_len * o.kv_len);
    samples.push_back({o, attention_time(o, d, truth).time});
  }
  const AttentionEfficiency found = fit::fit_attention(samples, d);
  EXPECT_NEAR(found.step64.us(), 0.9, 0.02);
  EXPECT_NEAR(found.step128.us(), 1.3, 0.02);
  EXPECT_NEAR(found.longest, 0.6, 0.03);
  EXPECT_NEAR(found.ragged.us(), 0.3, 0.02);
  EXPECT_NEAR(found.mask128.us(), 2, 0.05);
  EXPECT_NEAR(found.mask_odd.us(), 3, 0.1);
  EXPECT_EQ(found.mask256, AttentionEfficiency{}.mask256);
}

TEST(FitAttention, KeepsTheMasksAndTheDecodingThatNoSampleHas) {
  const Device d = device();
  AttentionEfficiency first;
  first.mask128 = {5e-6};
  first.decode.start = {7e-6};
  Sizes sizes;
  std::vector<fit::AttentionSample> samples;
  for (int i = 0; i < 60; ++i) {
    const Attention o = attention(sizes, 128);
    samples.push_back({o, attention_time(o, d, AttentionEfficiency{}).time});
  }
  const AttentionEfficiency found = fit::fit_attention(samples, d, first);
  EXPECT_EQ(found.mask128, first.mask128);
  EXPECT_EQ(found.decode.start, first.decode.start);
}

TEST(FitAttention, FindsTheTimesOfMadeUpDecoding) {
  const Device d = device();
  AttentionEfficiency truth;
  truth.decode.start = {4.5e-6};
  truth.decode.step128 = {1.6e-6};
  truth.decode.partial = {9e-12};
  Sizes sizes;
  std::vector<fit::AttentionSample> samples;
  for (int i = 0; i < 300; ++i) {
    const Attention o = attention(sizes, 128, true);
    samples.push_back({o, attention_time(o, d, truth).time});
  }
  const DecodeEfficiency found = fit::fit_attention(samples, d).decode;
  EXPECT_NEAR(found.start.us(), 4.5, 0.1);
  EXPECT_NEAR(found.step128.us(), 1.6, 0.05);
  EXPECT_NEAR(found.partial.value * 1e12, 9, 0.3);
}

TEST(FitAttention, BeginsWithParametersThatAreNothing) {
  const Device d = device();
  AttentionEfficiency first;
  first.ragged = {};
  Sizes sizes;
  std::vector<fit::AttentionSample> samples;
  for (int i = 0; i < 60; ++i) {
    Attention o = attention(sizes, 128);
    if (i % 2 == 0) o.kv_len = sizes(7, 14, 128);  // keys that fill their steps
    samples.push_back({o, attention_time(o, d, AttentionEfficiency{}).time});
  }
  const AttentionEfficiency found = fit::fit_attention(samples, d, first);
  EXPECT_NEAR(found.step128.us(), AttentionEfficiency{}.step128.us(), 0.03);
  EXPECT_NEAR(found.ragged.us(), AttentionEfficiency{}.ragged.us(), 0.03);
}

TEST(FitMemory, FindsBandwidthStartAndElementTime) {
  const Device d = device();
  Device real = d;
  real.efficiency.memory.strided = {{1.7e-6}, 0.85, 1.3, {3e-12}};
  Sizes sizes;
  std::vector<fit::MemorySample> samples;
  for (int i = 0; i < 200; ++i) {
    // Of every second op the elements are wide, so that the bytes decide.
    const std::int64_t elements = sizes(10, 27), bytes = elements * (i % 2 == 0 ? 4 : 32);
    const MemoryOp o{.read = Bytes(bytes), .access = Access::strided, .elements = Elements(elements)};
    samples.push_back({o, Operands::from_cache, op_time(o, real).time});
  }
  const MemoryEfficiency found = fit::fit_memory(samples, d, &MemoryEfficiencies::strided);
  EXPECT_NEAR(found.start.us(), 1.7, 0.05);
  EXPECT_NEAR(found.bandwidth, 0.85, 0.02);
  EXPECT_NEAR(found.cached, 1.3, 0.05);
  EXPECT_NEAR(found.element.value * 1e12, 3, 0.1);
  EXPECT_EQ(found.latency.value, d.efficiency.memory.strided.latency.value);  // no operand came from DRAM
}

TEST(FitMemory, FindsWhatOperandsInDramCost) {
  const Device d = device();
  Device real = d;
  const double mixed = d.efficiency.memory.fused.mixed;
  real.efficiency.memory.fused_norm = {{{1.1e-6}, 0.9, 1.7, {0.3e-12}, {0.7e-6}, mixed}, {0.15e-6}};
  Sizes sizes;
  std::vector<fit::MemorySample> samples;
  for (int i = 0; i < 300; ++i) {
    const Norm o{.rows = sizes(0, 16), .width = sizes(6, 13, 8), .fused = true};
    const Operands from = i % 2 == 0 ? Operands::from_dram : Operands::from_cache;
    samples.push_back({o, from, op_time(o, real, from).time});
  }
  const RowEfficiency found = fit::fit_memory(samples, d, &MemoryEfficiencies::fused_norm);
  EXPECT_NEAR(found.latency.us(), 0.7, 0.03);
  EXPECT_NEAR(found.bandwidth, 0.9, 0.01);
  EXPECT_NEAR(found.vector.us(), 0.15, 0.01);
  EXPECT_NEAR(found.cached, 1.7, 0.05);
}

TEST(FitFft, FindsHowPassesRun) {
  const Device d = device();
  Device real = d;
  real.efficiency.fft.rows.bandwidth = 0.7;
  real.efficiency.fft.columns.start = {5e-6};
  real.efficiency.fft.rows.chirp = {1.5e-12};
  Sizes sizes;
  std::vector<fit::FftSample> samples;
  for (int i = 0; i < 300; ++i) {
    const Fft o{.batch = sizes(4, 14), .n = {sizes(4, 9), sizes(4, 9)}, .rank = i % 2 + 1};
    samples.push_back({o, Operands::from_dram, op_time(o, real, Operands::from_dram).time});
  }
  const FftEfficiency found = fit::fit_fft(samples, d);
  EXPECT_NEAR(found.rows.bandwidth, 0.7, 0.05);
  EXPECT_NEAR(found.columns.start.us(), 5, 0.5);
  EXPECT_NEAR(found.rows.chirp.value * 1e12, 1.5, 0.1);
}

TEST(Ceilings, AreThoseOfTheFastestPoints) {
  Device d = device();
  d.l2 = Bytes(64 << 20);
  const auto copy = [](std::int64_t bytes, bool cold, double us) {
    const MemoryOp o{.read = Bytes(bytes / 2), .written = Bytes(bytes / 2), .access = Access::fused};
    return MeasuredOp{.name = "copy", .variant = "own", .op = o, .cold = cold, .time_us = us};
  };
  const std::vector<MeasuredOp> measured{copy(1 << 30, true, 250), copy(1 << 30, true, 256), copy(8 << 20, false, 2),
                                         copy(24 << 20, false, 4)};
  const MeasuredCeilings c = fit::ceilings(measured, d);
  EXPECT_NEAR(c.dram_copy->value, (1 << 30) / 250e-6, 1);
  EXPECT_NEAR(c.l2->value, (16 << 20) / 2e-6, 1e6);
  EXPECT_FALSE(c.bf16);
}

TEST(Calibrate, FitsEachKindAndReportsWhatItHeldOut) {
  Device d = device(), real = d;
  real.efficiency.half.bytes16.rate = 0.6;
  real.efficiency.memory.fused.bandwidth = 0.7;
  Sizes sizes;
  std::vector<MeasuredOp> measured;
  const auto add = [&](const Op& op, bool cold, const char* variant) {
    MeasuredOp m{.name = "made up", .variant = variant, .op = op, .cold = cold};
    m.time_us = op_time(op, real, operands(m)).time.us();
    measured.push_back(m);
  };
  for (int i = 0; i < 200; ++i) add(product(sizes), true, "cublaslt");
  for (int i = 0; i < 200; ++i) add(product(sizes), false, "cublaslt");  // from the cache: not for products
  for (int i = 0; i < 100; ++i) {
    const Bytes n(sizes(10, 31));
    add(MemoryOp{.read = n, .written = i % 4 < 2 ? n : Bytes{}, .access = Access::fused}, i % 2 == 0, "own");
  }
  const fit::Calibration c = fit::calibrate(measured, d);
  ASSERT_EQ(c.errors.size(), 2u);
  EXPECT_EQ(c.errors[0].kind, "half.bytes16");
  EXPECT_EQ(c.errors[0].fitted, 160u);
  EXPECT_EQ(c.errors[0].held_out, 40u);
  EXPECT_LT(c.errors[0].held_out_error, 0.03);
  EXPECT_EQ(c.errors[1].kind, "memory.fused");
  EXPECT_EQ(c.errors[1].fitted, 80u);
  EXPECT_LT(c.errors[1].held_out_error, 0.03);
  EXPECT_NEAR(c.efficiency.half.bytes16.rate, 0.6, 0.03);
  EXPECT_NEAR(c.efficiency.memory.fused.bandwidth, 0.7, 0.02);
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
}  // namespace vlmest::fit_test
