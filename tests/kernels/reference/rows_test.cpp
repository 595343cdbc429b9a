// SPDX-License-Identifier: Apache-2.0
// References that work on rows, against loops.
#include <limits>

#include <kernels/reference/cross_entropy.hpp>
#include <kernels/reference/gather.hpp>
#include <kernels/reference/norm.hpp>
#include <kernels/reference/rope.hpp>
#include <kernels/reference/softmax.hpp>

#include "../compare.hpp"

namespace vlmest::kernels {
namespace {

constexpr double exact = 1e-13;
constexpr double infinity = std::numeric_limits<double>::infinity();

double at(std::span<const double> values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; }

TEST(ReferenceNorm, IsTheDefinitionForBothKindsAndEveryNumberOfParameters) {
  Random random;
  for (const Norm::Kind kind : {Norm::Kind::layer_norm, Norm::Kind::rms_norm})
    for (const int parameters : {0, 1, 2}) {
      const Norm op{.kind = kind, .rows = 5, .width = 7, .parameters = parameters};
      const auto x = random.normal(35, 3), weight = random.uniform(parameters >= 1 ? 7 : 0),
                 bias = random.uniform(parameters == 2 ? 7 : 0);
      const auto r = reference::norm(op, x, weight, bias, 0.25);
      std::vector<double> expected;
      for (std::int64_t row = 0; row < op.rows; ++row) {
        double mean = 0, squares = 0;
        if (kind == Norm::Kind::layer_norm)
          for (std::int64_t i = 0; i < op.width; ++i) mean += at(x, row * op.width + i) / 7;
        for (std::int64_t i = 0; i < op.width; ++i) squares += std::pow(at(x, row * op.width + i) - mean, 2) / 7;
        const double rstd = 1 / std::sqrt(squares + 0.25);
        EXPECT_NEAR(at(r.mean, row), mean, exact);
        EXPECT_NEAR(at(r.rstd, row), rstd, exact);
        for (std::int64_t i = 0; i < op.width; ++i)
          expected.push_back((at(x, row * op.width + i) - mean) * rstd * (parameters >= 1 ? at(weight, i) : 1) +
                             (parameters == 2 ? at(bias, i) : 0));
      }
      expect_close(r.y, expected, exact);
    }
}

TEST(ReferenceSoftmax, SumsToOneInProportionToTheExponentials) {
  Random random;
  const Softmax op{.rows = 4, .width = 9};
  const auto x = random.normal(36, 0, 5);
  const auto y = reference::softmax(op, x);
  std::vector<double> expected;
  for (std::int64_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < 9; ++i) sum += std::exp(at(x, row * 9 + i));
    for (std::int64_t i = 0; i < 9; ++i) expected.push_back(std::exp(at(x, row * 9 + i)) / sum);
  }
  expect_close(y, expected, exact);
}

TEST(ReferenceSoftmax, LargeValuesDoNotOverflowAndMaskedOnesVanish) {
  const std::vector<double> x{5000, 5000, -infinity, 5000 + std::log(2.0)};
  const auto y = reference::softmax({.rows = 1, .width = 4}, x);
  expect_close(y, std::vector<double>{0.25, 0.25, 0, 0.5}, exact);
}

TEST(ReferenceSoftmax, AMaskedRowIsNotANumberUnlessSafe) {
  const std::vector<double> x{-infinity, -infinity, 0, 0};
  EXPECT_TRUE(std::isnan(reference::softmax({.rows = 2, .width = 2}, x).front()));
  EXPECT_EQ(reference::softmax({.rows = 2, .width = 2, .safe = true}, x), (std::vector<double>{0, 0, 0.5, 0.5}));
}

TEST(ReferenceRope, TurnsPairsThatLieHalfAHeadApart) {
  Random random;
  for (const std::int64_t rotary : {6, 4}) {
    const RotaryEmbedding op{.batch = 2, .rows = 3, .heads = 4, .kv_heads = 2, .head_dim = 6, .rotary_dim = rotary};
    const auto q = random.normal(2 * 3 * 4 * 6), k = random.normal(2 * 3 * 2 * 6), cos = random.uniform(3 * rotary),
               sin = random.uniform(3 * rotary);
    const auto r = reference::rope(op, q, k, cos, sin);
    const auto turned = [&](std::span<const double> x, std::int64_t heads) {
      std::vector<double> y(x.begin(), x.end());
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t row = 0; row < 3; ++row)
          for (std::int64_t h = 0; h < heads; ++h)
            for (std::int64_t d = 0; d < rotary; ++d) {
              const std::int64_t head = ((b * 3 + row) * heads + h) * 6, half = rotary / 2;
              const double other = d < half ? -at(x, head + d + half) : at(x, head + d - half);
              y[static_cast<std::size_t>(head + d)] =
                  at(x, head + d) * at(cos, row * rotary + d) + other * at(sin, row * rotary + d);
            }
      return y;
    };
    expect_close(r.q, turned(q, 4), exact);
    expect_close(r.k, turned(k, 2), exact);
  }
}

TEST(ReferenceGather, TakesRowsAndRefusesOthers) {
  Random random;
  const Gather op{.rows = 6, .width = 3, .table_rows = 4};
  const auto table = random.normal(12);
  const auto index = random.indices(6, 4);
  std::vector<double> expected;
  for (const std::int64_t row : index)
    for (std::int64_t i = 0; i < 3; ++i) expected.push_back(at(table, row * 3 + i));
  EXPECT_EQ(reference::gather(op, table, index), expected);
  EXPECT_THROW(reference::gather(op, table, std::vector<std::int64_t>{0, 1, 2, 3, 4, 0}), Error);
  EXPECT_THROW(reference::gather(op, table, std::vector<std::int64_t>{0, 1, 2, 3, -1, 0}), Error);
  EXPECT_THROW(reference::gather(op, table, std::vector<std::int64_t>{0}), Error);
}

TEST(ReferenceCrossEntropy, IsTheNegativeLogOfTheTargetsProbability) {
  Random random;
  const CrossEntropy op{.rows = 5, .vocab = 11};
  const auto logits = random.normal(55, 0, 4);
  auto targets = random.indices(5, 11);
  targets[2] = -100;
  const auto r = reference::cross_entropy(op, logits, targets);
  double mean = 0;
  for (std::int64_t row = 0; row < 5; ++row) {
    double sum = 0, loss = 0;
    for (std::int64_t i = 0; i < 11; ++i) sum += std::exp(at(logits, row * 11 + i));
    const std::int64_t target = targets[static_cast<std::size_t>(row)];
    if (row != 2) loss = -std::log(std::exp(at(logits, row * 11 + target)) / sum);
    EXPECT_NEAR(at(r.losses, row), loss, 1e-12);
    mean += loss / 4;
  }
  EXPECT_NEAR(r.mean, mean, 1e-12);
}

TEST(ReferenceCrossEntropy, NothingCountedHasNoMean) {
  const std::vector<double> logits{1, 2};
  EXPECT_TRUE(
      std::isnan(reference::cross_entropy({.rows = 1, .vocab = 2}, logits, std::vector<std::int64_t>{7}, 7).mean));
  EXPECT_THROW(reference::cross_entropy({.rows = 1, .vocab = 2}, logits, std::vector<std::int64_t>{2}), Error);
}

}  // namespace
}  // namespace vlmest::kernels
