// SPDX-License-Identifier: Apache-2.0
// Measured figures beside predicted ones: errors, their summary, limits, and what is compared with what.
#include <algorithm>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include <vlmest/report/compare_run.hpp>
#include <vlmest/report/measured_op.hpp>

namespace vlmest::comparison_test {
namespace {

Comparison compared(double predicted, double measured, const char* quantity = "q") {
  return {.row = "r", .quantity = quantity, .unit = Unit::bytes, .predicted = predicted, .measured = measured};
}

TEST(Comparison, ErrorIsSignedAndOfTheMeasuredValue) {
  EXPECT_NEAR(compared(103, 100).error(), 3, 1e-12);
  EXPECT_EQ(compared(50, 100).error(), -50);
  EXPECT_EQ(compared(7, 7).error(), 0);
  EXPECT_EQ(compared(0, 0).error(), 0);
  EXPECT_EQ(compared(1, 0).error(), 100);
}

TEST(Comparison, SumsUpAbsoluteErrors) {
  const std::vector<Comparison> all{compared(101, 100), compared(9, 1, "other"), compared(96, 100), compared(102, 100)};
  const ErrorSummary s = summary(all, "q");
  EXPECT_EQ(s.rows, 3u);
  EXPECT_NEAR(s.median, 2, 1e-12);
  EXPECT_NEAR(s.mean, 7.0 / 3, 1e-12);
  EXPECT_NEAR(s.worst, 4, 1e-12);
  const std::vector<Comparison> two{compared(101, 100), compared(96, 100)};
  EXPECT_NEAR(summary(two, "q").median, 2.5, 1e-12) << "of two the middle";
  EXPECT_NEAR(share_within(all, "q", 2.5), 200.0 / 3, 1e-9);
  EXPECT_EQ(summary(all, "none").rows, 0u);
}

TEST(Comparison, ALimitHoldsForItsStatistic) {
  const ErrorSummary s{.quantity = "q", .rows = 2, .median = 1, .mean = 2, .worst = 3};
  for (const auto& [statistic, at] :
       {std::pair(Statistic::median, 1.0), {Statistic::mean, 2.0}, {Statistic::worst, 3.0}}) {
    EXPECT_TRUE((ErrorLimit{"q", statistic, at}.holds(s))) << name(statistic);
    EXPECT_FALSE((ErrorLimit{"q", statistic, at - 0.01}.holds(s))) << name(statistic);
  }
  EXPECT_FALSE((ErrorLimit{"q", Statistic::worst, 100}.holds({}))) << "nothing was measured";
}

const Device device{.sm = 90,
                    .multiprocessors = 132,
                    .dram = {3e12},
                    .l2 = Bytes(50 << 20),
                    .peaks = {{6e13}, {4e14}, {8e14}, {8e14}, {16e14}, {16e14}},
                    .launch = {5e-6},
                    .kernel_floor = {1e-6}};

std::vector<std::string> quantities(const MeasuredOp& m) {
  std::vector<std::string> r;
  for (const auto& c : compare(m, device)) r.push_back(c.quantity);
  return r;
}
using Names = std::vector<std::string>;

TEST(MeasuredOp, ClassVariantAndCacheNameTheQuantity) {
  MeasuredOp m{.variant = "cublaslt", .op = Matmul{.m = 64, .n = 64, .k = 64}, .time_us = 1};
  EXPECT_EQ(quantities(m), Names{"linear_time"});
  m.variant = "cublaslt_best";
  EXPECT_EQ(quantities(m), Names{"linear_cublaslt_best_time"});
  m.variant = "";
  m.cold = false;
  EXPECT_EQ(quantities(m), Names{"linear_time_hot"});
  EXPECT_EQ(quantities({.variant = "cudnn", .op = Attention{.q_len = 2}, .time_us = 1}), Names{"sdpa_time"});
  EXPECT_EQ(quantities({.variant = "cudnn", .op = Attention{.q_len = 1}, .time_us = 1}), Names{"decode_time"});
  EXPECT_EQ(quantities({.variant = "naive", .op = Attention{.q_len = 2}, .time_us = 1}), Names{"sdpa_naive_time"});
  const MemoryOp large{.read = Bytes(1 << 20), .written = Bytes{}}, small{.read = Bytes((1 << 20) - 1)};
  EXPECT_EQ(quantities({.variant = "own", .op = large, .time_us = 1}), Names{"memory_time"});
  EXPECT_EQ(quantities({.variant = "own", .op = small, .time_us = 1}), Names{"memory_time_small"});
}

TEST(MeasuredOp, TrafficIsComparedWhereTheCacheCannotHoldIt) {
  const auto op = [](std::int64_t bytes) {
    return MeasuredOp{.op = MemoryOp{.read = Bytes(bytes)}, .dram_bytes = double(bytes), .device_bytes = 5};
  };
  EXPECT_EQ(quantities(op(std::int64_t{200} << 20)), (Names{"memory_dram_bytes", "memory_device_bytes"}));
  EXPECT_EQ(quantities(op((std::int64_t{200} << 20) - 1)), Names{"memory_device_bytes"});
  MeasuredOp hot = op(std::int64_t{200} << 20);
  hot.cold = false;
  EXPECT_EQ(quantities(hot), Names{"memory_device_bytes"});
}

TEST(MeasuredOp, OperationsAreThoseOfTheTensorCores) {
  const Matmul product{.m = 8, .n = 16, .k = 32};
  const auto c = compare(MeasuredOp{.op = product, .tensor_ops = 1}, device);
  ASSERT_EQ(c.size(), 1u);
  EXPECT_EQ(c[0].quantity, "linear_tensor_ops");
  EXPECT_EQ(c[0].predicted, 2.0 * 8 * 16 * 32);
  Matmul single = product;
  single.dtype = DType::fp32;
  EXPECT_EQ(quantities({.op = single, .tensor_ops = 1}), Names{}) << "those run elsewhere";
}

TEST(MeasuredRun, NameTellsRunsApart) {
  MeasuredRun r{.model = "m", .plan = {.batch = 2, .image_height = 3, .image_width = 4, .text = 5}};
  EXPECT_EQ(name(r), "m b2 text 5 images 1 3x4");
  r.plan.lora.rank = 16;
  EXPECT_EQ(name(r), "m b2 text 5 images 1 3x4") << "inference has none of training's options";
  r.training = true;
  r.plan.optimizer = Optimizer::sgd_momentum;
  r.plan.dtype = DType::fp32;
  EXPECT_EQ(name(r), "m b2 text 5 images 1 3x4 fp32 sgd-momentum lora 16");
}

TEST(MeasuredRun, OthersAreWhatTheWorkspacesDoNotExplain) {
  MeasuredRun r;
  const std::vector<LiveTensor> at_peak{{.tensor = 3, .bytes = Bytes(100)}, {.bytes = Bytes(30)}, {.bytes = Bytes(4)}};
  EXPECT_EQ(held_for_others(r, at_peak), 0);
  r.figures["alloc_base"] = 40;
  EXPECT_EQ(held_for_others(r, at_peak), 6);
  r.figures["alloc_base"] = 20;
  EXPECT_EQ(held_for_others(r, at_peak), 0);
}

/// The page is what a user looks a quantity up in.
TEST(MeasuredRun, ThePageNamesEveryQuantity) {
  std::ifstream in(VLMEST_SOURCE_DIR "/docs/reference/measured-rows.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  for (const auto& q : run_quantities)
    EXPECT_NE(page.find("`" + std::string(q.name) + "`"), std::string::npos) << q.name;
  for (const auto c : {"linear", "sdpa", "decode", "fft", "convolution", "memory"})
    EXPECT_TRUE(value_of<OpKind>(c)) << c;
}

}  // namespace
}  // namespace vlmest::comparison_test
