// SPDX-License-Identifier: Apache-2.0
#include <kernels/norm/norm.hpp>
#include <kernels/reference/norm.hpp>

#include "offset.hpp"

namespace vlmest::kernels::norm_test {
namespace {

/// Fresh rows around a mean far from zero, so that a variance taken the wrong way shows.
void expect_right(const Norm& op, std::int64_t offset, Random& random) {
  SCOPED_TRACE(std::string(name(op.dtype)) + (op.kind == Norm::Kind::layer_norm ? " layer norm" : " RMS norm") +
               " rows " + std::to_string(op.rows) + " width " + std::to_string(op.width) + " parameters " +
               std::to_string(op.parameters) + " offset " + std::to_string(offset));
  const float epsilon = 1e-6f;
  const FusedNorm norm(op, epsilon);
  const cuda::Stream stream;
  const bool layer = op.kind == Norm::Kind::layer_norm;
  const OffsetInput x(op.dtype, random.normal(op.rows * op.width, layer ? 4 : 0.5, 1), offset);
  const OffsetInput weight(op.dtype, random.uniform(op.parameters >= 1 ? op.width : 0, 0.5, 1.5), offset);
  const OffsetInput bias(op.dtype, random.uniform(op.parameters == 2 ? op.width : 0), offset);
  const OffsetOutput y(op.dtype, op.rows * op.width, offset);
  const Output mean(DType::fp32, op.rows), rstd(DType::fp32, op.rows);
  const NormOperands operands{.x = x.data(),
                              .weight = weight.data(),
                              .bias = bias.data(),
                              .y = y.data(),
                              .mean = static_cast<float*>(mean.data()),
                              .rstd = static_cast<float*>(rstd.data())};
  norm(operands, stream.get());
  stream.synchronize();
  const auto expected = reference::norm(op, x.values(), weight.values(), bias.values(), epsilon);
  expect_close(y.values(), expected.y, tolerance(op.dtype));
  // Statistics are fp32 whatever the rows are.
  expect_close(rstd.values(), expected.rstd, tolerance(DType::fp32));
  if (layer)
    expect_close(mean.values(), expected.mean, tolerance(DType::fp32));
  else
    EXPECT_TRUE(std::isnan(mean.values().front())) << "an RMS norm has no mean";
}

class NormKernel : public DeviceTest, public ::testing::WithParamInterface<DType> {};

TEST_P(NormKernel, EveryWidthWithAndWithoutParameters) {
  Random random;
  // One lane, part of a warp, one warp, several; held by 8 vectors a thread; too long to be held; odd ones.
  for (const std::int64_t width : {1, 2, 7, 16, 64, 72, 128, 257, 1024, 1152, 3420, 4096, 5120, 8191, 16384, 40000})
    for (const Norm::Kind kind : {Norm::Kind::layer_norm, Norm::Kind::rms_norm}) {
      // One or two values may lie so close together that their distance from the mean is rounding alone.
      if (width < 7 && kind == Norm::Kind::layer_norm) continue;
      for (const int parameters : {0, 1, 2})
        expect_right({.kind = kind, .rows = 5, .width = width, .dtype = GetParam(), .parameters = parameters}, 0,
                     random);
    }
}

TEST_P(NormKernel, RowsThatDoNotFillTheLastBlock) {
  Random random;
  for (const std::int64_t rows : {1, 3, 31, 1000, 1025})
    for (const std::int64_t width : {64, 129, 800})
      expect_right({.rows = rows, .width = width, .dtype = GetParam()}, 0, random);
}

TEST_P(NormKernel, AddressesThatAreNotAligned) {
  Random random;
  for (const std::int64_t offset : {1, 2, 3})
    for (const std::int64_t width : {80, 1001, 4096, 20000})
      expect_right({.rows = 3, .width = width, .dtype = GetParam()}, offset, random);
}

TEST_P(NormKernel, InPlaceAndWithoutStatistics) {
  Random random;
  const Norm op{.kind = Norm::Kind::rms_norm, .rows = 37, .width = 3584, .dtype = GetParam(), .parameters = 1};
  const cuda::Stream stream;
  const Input x(op.dtype, random.normal(op.rows * op.width)), weight(op.dtype, random.uniform(op.width, 0.5, 1.5));
  const Output y(op.dtype, op.rows * op.width);
  const Bytes size = size_of(Elements(op.rows * op.width), op.dtype);
  cuda::check(cudaMemcpy(y.data(), x.data(), static_cast<std::size_t>(size.value()), cudaMemcpyDeviceToDevice));
  cuda::check(cudaDeviceSynchronize());
  FusedNorm{op}({.x = y.data(), .weight = weight.data(), .y = y.data()}, stream.get());
  stream.synchronize();
  expect_close(y.values(), reference::norm(op, x.values(), weight.values(), {}).y, tolerance(op.dtype));
}

INSTANTIATE_TEST_SUITE_P(Types, NormKernel, ::testing::Values(DType::fp32, DType::bf16, DType::fp16),
                         [](const auto& i) { return std::string(name(i.param)); });

TEST(NormKernelLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_THROW(FusedNorm({.rows = 2, .width = 8, .parameters = 1})({}, nullptr), Error);
  EXPECT_NO_THROW(FusedNorm({.rows = 2, .width = 8}));
  EXPECT_THROW(FusedNorm({.rows = 2, .width = 8, .dtype = DType::fp64}), Error);
  EXPECT_THROW(FusedNorm({.rows = 2, .width = 8, .packed = true}), Error);
  EXPECT_THROW(FusedNorm({.rows = 2, .width = 8, .parameters = 3}), Error);
  EXPECT_THROW(FusedNorm({.rows = 0, .width = 8}), Error);
  EXPECT_THROW(FusedNorm({.rows = 2, .width = 0}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::norm_test
