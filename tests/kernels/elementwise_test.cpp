// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <kernels/add/add.hpp>
#include <kernels/reference/elementwise.hpp>
#include <kernels/silu_mul/silu_mul.hpp>

#include "offset.hpp"

namespace vlmest::kernels::elementwise_test {
namespace {

using Kind = Elementwise::Kind;

/// Around the number of vectors at which a thread takes two pairs, with rests of every length.
constexpr std::int64_t many = (1 << 18) * 8;
constexpr std::array<std::int64_t, 10> sizes{1, 2, 3, 7, 8, 255, 4099, 1'000'003, many + 5, 2 * many + 2049};

class ElementwiseKernel : public DeviceTest, public ::testing::WithParamInterface<std::tuple<Kind, DType>> {
 protected:
  static void run(const Elementwise& op, const void* a, const void* b, void* out) {
    const cuda::Stream stream;
    if (op.kind == Kind::add)
      Add{op}({.a = a, .b = b, .out = out}, stream.get());
    else
      SiluMul{op}({.gate = a, .up = b, .out = out}, stream.get());
    stream.synchronize();
  }

  /// Offsets of both operands and of the result.
  static void expect_right(std::int64_t n, std::array<std::int64_t, 3> offsets, Random& random) {
    const Elementwise op{.kind = std::get<Kind>(GetParam()), .elements = n, .dtype = std::get<DType>(GetParam())};
    SCOPED_TRACE(std::to_string(n) + " elements, offsets " + std::to_string(offsets[0]) + " " +
                 std::to_string(offsets[1]) + " " + std::to_string(offsets[2]));
    const OffsetInput a(op.dtype, random.normal(n, 1, 3), offsets[0]), b(op.dtype, random.normal(n, 1), offsets[1]);
    const OffsetOutput out(op.dtype, n, offsets[2]);
    run(op, a.data(), b.data(), out.data());
    expect_close(out.values(), reference::elementwise(op, a.values(), b.values()), tolerance(op.dtype));
  }
};

TEST_P(ElementwiseKernel, EverySizeWithItsRest) {
  Random random;
  for (const std::int64_t n : sizes) expect_right(n, {0, 0, 0}, random);
}

TEST_P(ElementwiseKernel, AddressesThatAreNotAligned) {
  Random random;
  for (const std::array<std::int64_t, 3> offsets :
       {std::array<std::int64_t, 3>{1, 1, 1}, {0, 1, 0}, {2, 0, 4}, {0, 0, 3}, {4, 4, 4}})
    for (const std::int64_t n : {5, 1023, 70'001}) expect_right(n, offsets, random);
}

TEST_P(ElementwiseKernel, InPlace) {
  Random random;
  const Elementwise op{.kind = std::get<Kind>(GetParam()), .elements = 12'345, .dtype = std::get<DType>(GetParam())};
  const Input a(op.dtype, random.normal(op.elements)), b(op.dtype, random.normal(op.elements));
  const auto expected = reference::elementwise(op, a.values(), b.values());
  const Output out(op.dtype, op.elements);
  const auto bytes = static_cast<std::size_t>(size_of(Elements(op.elements), op.dtype).value());
  cuda::check(cudaMemcpy(out.data(), b.data(), bytes, cudaMemcpyDeviceToDevice));
  cuda::check(cudaDeviceSynchronize());
  run(op, a.data(), out.data(), out.data());
  expect_close(out.values(), expected, tolerance(op.dtype));
}

INSTANTIATE_TEST_SUITE_P(Kinds, ElementwiseKernel,
                         ::testing::Combine(::testing::Values(Kind::add, Kind::silu_mul),
                                            ::testing::Values(DType::fp32, DType::bf16, DType::fp16)),
                         [](const auto& i) {
                           return std::string(name(std::get<Kind>(i.param))) + "_" +
                                  std::string(name(std::get<DType>(i.param)));
                         });

class SiluMulKernel : public DeviceTest {};

TEST_F(SiluMulKernel, LargeGatesNeitherOverflowNorVanish) {
  const std::vector<double> gate{-1e30, -200, -90, -88, 0, 88, 200, 1e30}, up(8, 1);
  const Input a(DType::fp32, gate), b(DType::fp32, up);
  const Output out(DType::fp32, 8);
  const cuda::Stream stream;
  SiluMul{{.kind = Kind::silu_mul, .elements = 8, .dtype = DType::fp32}}(
      {.gate = a.data(), .up = b.data(), .out = out.data()}, stream.get());
  const auto y = out.values();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], 0, 1e-30) << gate[i];
  for (std::size_t i = 4; i < 8; ++i) EXPECT_FLOAT_EQ(static_cast<float>(y[i]), static_cast<float>(gate[i]));
}

TEST(ElementwiseKernelLimits, AreSaidBeforeAnythingRuns) {
  EXPECT_NO_THROW(Add({.kind = Kind::add, .elements = 8}));
  EXPECT_NO_THROW(SiluMul({.kind = Kind::silu_mul, .elements = 8}));
  EXPECT_THROW(Add({.kind = Kind::mul, .elements = 8}), Error);
  EXPECT_THROW(SiluMul({.kind = Kind::silu, .elements = 8}), Error);
  EXPECT_THROW(Add({.kind = Kind::add, .elements = 0}), Error);
  EXPECT_THROW(Add({.kind = Kind::add, .elements = 8, .dtype = DType::fp8}), Error);
  EXPECT_THROW(SiluMul({.kind = Kind::silu_mul, .elements = 8, .dtype = DType::fp64}), Error);
}

}  // namespace
}  // namespace vlmest::kernels::elementwise_test
