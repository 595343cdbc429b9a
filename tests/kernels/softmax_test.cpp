// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <kernels/reference/softmax.hpp>
#include <kernels/softmax/softmax.hpp>

#include "offset.hpp"

namespace vlmest::kernels::softmax_test {
namespace {

/// Of the type whose rounding is coarser.
double tolerance_of(const Softmax& op) { return std::max(tolerance(op.in), tolerance(op.out)); }

void expect_right(const Softmax& op, std::int64_t offset, Random& random, double deviation = 2) {
  SCOPED_TRACE(std::string(name(op.in)) + " to " + std::string(name(op.out)) + " rows " + std::to_string(op.rows) +
               " width " + std::to_string(op.width) + " offset " + std::to_string(offset));
  const cuda::Stream stream;
  const OffsetInput x(op.in, random.normal(op.rows * op.width, 1, deviation), offset);
  const OffsetOutput y(op.out, op.rows * op.width, offset);
  FusedSoftmax{op}({.x = x.data(), .y = y.data()}, stream.get());
  stream.synchronize();
  expect_close(y.values(), reference::softmax(op, x.values()), tolerance_of(op));
}

class SoftmaxKernel : public DeviceTest, public ::testing::WithParamInterface<std::pair<DType, DType>> {
 protected:
  Softmax op(std::int64_t rows, std::int64_t width) const {
    return {.rows = rows, .width = width, .in = GetParam().first, .out = GetParam().second};
  }
};

TEST_P(SoftmaxKernel, EveryWidth) {
  Random random;
  for (const std::int64_t width : {1, 2, 7, 16, 64, 72, 128, 257, 577, 1024, 3420, 4096, 8191, 16384, 40000, 100003})
    expect_right(op(5, width), 0, random);
}

TEST_P(SoftmaxKernel, RowsThatDoNotFillTheLastBlock) {
  Random random;
  for (const std::int64_t rows : {1, 3, 31, 1000, 1025})
    for (const std::int64_t width : {24, 129, 800}) expect_right(op(rows, width), 0, random);
}

TEST_P(SoftmaxKernel, AddressesThatAreNotAligned) {
  Random random;
  for (const std::int64_t offset : {1, 2, 3})
    for (const std::int64_t width : {80, 1001, 4096, 40000}) expect_right(op(3, width), offset, random);
}

TEST_P(SoftmaxKernel, LargeValuesNeitherOverflowNorVanish) {
  Random random;
  for (const std::int64_t width : {33, 1000, 50000}) expect_right(op(4, width), 0, random, 500);
}

TEST_P(SoftmaxKernel, MaskedElementsAreZeroAndMaskedRowsAreNotNumbers) {
  Random random;
  for (const std::int64_t width : {9, 3000, 50000}) {
    const Softmax o = op(2, width);
    auto values = random.normal(2 * width);
    for (std::int64_t i = 0; i < 2 * width; ++i)
      if (i >= width || i % 3 != 0) values[static_cast<std::size_t>(i)] = -std::numeric_limits<double>::infinity();
    const Input x(o.in, values);
    const Output y(o.out, 2 * width);
    const cuda::Stream stream;
    FusedSoftmax{o}({.x = x.data(), .y = y.data()}, stream.get());
    stream.synchronize();
    const auto out = y.values();
    const auto expected =
        reference::softmax({.rows = 1, .width = width}, x.values().first(static_cast<std::size_t>(width)));
    expect_close(std::span(out).first(static_cast<std::size_t>(width)), expected, tolerance_of(o));
    for (std::int64_t i = 0; i < width; ++i) {
      if (i % 3 != 0) {
        EXPECT_EQ(out[static_cast<std::size_t>(i)], 0) << i;
      }
      EXPECT_TRUE(std::isnan(out[static_cast<std::size_t>(width + i)])) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SoftmaxKernel,
                         ::testing::Values(std::pair{DType::fp32, DType::fp32}, std::pair{DType::bf16, DType::bf16},
                                           std::pair{DType::fp16, DType::fp16}, std::pair{DType::bf16, DType::fp32},
                                           std::pair{DType::fp16, DType::fp32}, std::pair{DType::fp32, DType::bf16},
                                           std::pair{DType::fp32, DType::fp16}),
                         [](const auto& i) {
                           return std::string(name(i.param.first)) + "_to_" + std::string(name(i.param.second));
                         });

TEST(SoftmaxKernelLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_NO_THROW(FusedSoftmax(Softmax{.rows = 2, .width = 8}));
  EXPECT_THROW(FusedSoftmax(Softmax{.rows = 2, .width = 8, .in = DType::fp16, .out = DType::bf16}), Error);
  EXPECT_THROW(FusedSoftmax(Softmax{.rows = 2, .width = 8, .out = DType::fp8}), Error);
  EXPECT_THROW(FusedSoftmax(Softmax{.rows = 2, .width = 8, .safe = true}), Error);
  EXPECT_THROW(FusedSoftmax(Softmax{.rows = 2, .width = 0}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::softmax_test
