// SPDX-License-Identifier: Apache-2.0
#include <kernels/cross_entropy/cross_entropy.hpp>
#include <kernels/cuda/graph.hpp>
#include <kernels/reference/cross_entropy.hpp>

#include "offset.hpp"

namespace vlmest::kernels::cross_entropy_test {
namespace {

constexpr std::int64_t ignored = -100;

const std::int64_t* indices_of(const Input& i) { return static_cast<const std::int64_t*>(i.data()); }
float* floats_of(const Output& o) { return static_cast<float*>(o.data()); }

class CrossEntropyKernel : public DeviceTest, public ::testing::WithParamInterface<DType> {
 protected:
  /// Losses are fp32 sums over logits that are exact, whatever the logits' type is.
  static void expect_right(const CrossEntropy& op, std::vector<std::int64_t> targets, std::int64_t offset,
                           Random& random, double deviation = 3) {
    SCOPED_TRACE("rows " + std::to_string(op.rows) + " vocabulary " + std::to_string(op.vocab) + " offset " +
                 std::to_string(offset));
    const OffsetInput logits(op.dtype, random.normal(op.rows * op.vocab, 5, deviation), offset);
    const Input target(targets);
    const Output losses(DType::fp32, op.rows), mean(DType::fp32, 1);
    const cuda::Stream stream;
    OnlineCrossEntropy(op, ignored)(
        {.logits = logits.data(), .targets = indices_of(target), .losses = floats_of(losses), .mean = floats_of(mean)},
        stream.get());
    stream.synchronize();
    const auto expected = reference::cross_entropy(op, logits.values(), targets, ignored);
    expect_close(losses.values(), expected.losses, tolerance(DType::fp32));
    expect_close(mean.values(), std::vector<double>{expected.mean}, tolerance(DType::fp32));
  }
};

TEST_P(CrossEntropyKernel, EveryVocabulary) {
  Random random;
  for (const std::int64_t vocab : {2, 7, 100, 4099, 16384, 32064, 151'655, 256'000})
    expect_right({.rows = 9, .vocab = vocab, .dtype = GetParam()}, random.indices(9, vocab), 0, random);
  expect_right({.rows = 2000, .vocab = 517, .dtype = GetParam()}, random.indices(2000, 517), 0, random);
}

TEST_P(CrossEntropyKernel, AddressesThatAreNotAligned) {
  Random random;
  for (const std::int64_t offset : {1, 3, 4})
    for (const std::int64_t vocab : {3, 5, 1000, 20'011})
      expect_right({.rows = 6, .vocab = vocab, .dtype = GetParam()}, random.indices(6, vocab), offset, random);
}

TEST_P(CrossEntropyKernel, IgnoredTargetsDoNotCount) {
  Random random;
  auto targets = random.indices(40, 1000);
  for (std::size_t i = 0; i < targets.size(); i += 3) targets[i] = ignored;
  expect_right({.rows = 40, .vocab = 1000, .dtype = GetParam()}, targets, 0, random);
}

TEST_P(CrossEntropyKernel, LargeLogitsDoNotOverflow) {
  Random random;
  expect_right({.rows = 5, .vocab = 30'000, .dtype = GetParam()}, random.indices(5, 30'000), 0, random, 300);
}

INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyKernel, ::testing::Values(DType::fp32, DType::bf16, DType::fp16),
                         [](const auto& i) { return std::string(name(i.param)); });

class CrossEntropyKernelEdges : public DeviceTest {};

TEST_F(CrossEntropyKernelEdges, NothingCountedHasNoMeanAndAWrongTargetNoLoss) {
  Random random;
  const CrossEntropy op{.rows = 2, .vocab = 50};
  const Input logits(op.dtype, random.normal(100));
  const Output losses(DType::fp32, 2), mean(DType::fp32, 1);
  const cuda::Stream stream;
  const auto run = [&](std::vector<std::int64_t> targets) {
    const Input target(targets);
    OnlineCrossEntropy(op, ignored)(
        {.logits = logits.data(), .targets = indices_of(target), .losses = floats_of(losses), .mean = floats_of(mean)},
        stream.get());
    stream.synchronize();
  };
  run({ignored, ignored});
  EXPECT_EQ(losses.values(), (std::vector<double>{0, 0}));
  EXPECT_TRUE(std::isnan(mean.values().front()));
  run({50, 3});
  EXPECT_TRUE(std::isnan(losses.values().front()));
  EXPECT_GT(losses.values().back(), 0);
}

TEST_F(CrossEntropyKernelEdges, TwoRunsGiveTheSameBits) {
  Random random;
  const CrossEntropy op{.rows = 3000, .vocab = 777};
  const Input logits(op.dtype, random.normal(op.rows * op.vocab)), targets(random.indices(op.rows, op.vocab));
  const Output losses(DType::fp32, op.rows), mean(DType::fp32, 1);
  const OnlineCrossEntropy loss(op);
  const cuda::Stream stream;
  const CrossEntropyOperands operands{
      .logits = logits.data(), .targets = indices_of(targets), .losses = floats_of(losses), .mean = floats_of(mean)};
  const cuda::Graph graph(stream.get(), [&] { loss(operands, stream.get()); });
  EXPECT_EQ(graph.nodes(), static_cast<std::size_t>(cost(op).kernels));
  graph.launch(stream.get());
  stream.synchronize();
  const double first = mean.values().front();
  graph.launch(stream.get());
  stream.synchronize();
  EXPECT_EQ(mean.values().front(), first);
}

TEST(CrossEntropyKernelLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_NO_THROW(OnlineCrossEntropy({.rows = 2, .vocab = 8}));
  EXPECT_THROW(OnlineCrossEntropy({.rows = 2, .vocab = 8, .dtype = DType::fp64}), Error);
  EXPECT_THROW(OnlineCrossEntropy({.rows = 0, .vocab = 8}), Error);
  EXPECT_THROW(OnlineCrossEntropy({.rows = std::int64_t{1} << 31, .vocab = 8}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::cross_entropy_test
