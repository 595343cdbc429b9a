// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/analysis/roofline.hpp>
#include <vlmest/device/device.hpp>

namespace vlmest::device_test {
namespace {

constexpr Peaks volta{{15.7e12}, {}, {125e12}, {}, {}, {}};
constexpr Peaks turing{{8.1e12}, {}, {65e12}, {}, {}, {130e12}};
constexpr Peaks ampere{{19.5e12}, {156e12}, {312e12}, {312e12}, {}, {624e12}};
constexpr Peaks hopper{{66.9e12}, {494.7e12}, {989.4e12}, {989.4e12}, {1978.9e12}, {1978.9e12}};

Device hopper_device() {
  Device d;
  d.peaks = hopper;
  d.dram = {4.8e12};
  d.kernel_floor = {1e-6};
  return d;
}

// A unit of its own is used; vector arithmetic runs at fp32's rate whatever the type.
static_assert(peak(hopper, DType::bf16).value == 989.4e12);
static_assert(peak(hopper, DType::fp8).value == 1978.9e12);
static_assert(peak(hopper, DType::fp32).value == 66.9e12);
static_assert(peak(hopper, DType::bf16, false).value == 66.9e12);
static_assert(peak(hopper, DType::int8, false).value == 66.9e12);

// Volta and Turing have tensor cores for fp16 and none for bf16 and tf32.
static_assert(peak(volta, DType::fp16).value == 125e12);
static_assert(peak(volta, DType::bf16).value == 15.7e12);
static_assert(peak(turing, DType::bf16).value == 8.1e12);
static_assert(peak(volta, DType::tf32).value == 15.7e12);
static_assert(!has_tensor_cores(volta, DType::bf16) && has_tensor_cores(volta, DType::fp16));
static_assert(!has_tensor_cores(hopper, DType::fp32));

// Narrow types without a unit are converted to a half type first.
static_assert(peak(ampere, DType::fp8).value == 312e12);
static_assert(peak(ampere, DType::int8).value == 624e12);
static_assert(peak(ampere, DType::nf4).value == 312e12);
static_assert(peak(hopper, DType::int4).value == 989.4e12);
static_assert(peak(volta, DType::int8).value == 125e12);
static_assert(peak(Peaks{{1e12}, {}, {}, {}, {}, {}}, DType::fp8).value == 1e12);

// A complex transform of single precision is fp32 arithmetic.
static_assert(peak(hopper, DType::complex64).value == 66.9e12);

TEST(Device, DoublePrecisionIsRefused) {
  EXPECT_THROW(peak(hopper, DType::fp64), Error);
  EXPECT_THROW(peak(hopper, DType::complex128, false), Error);
}

TEST(Device, RidgeIsPeakOverBandwidth) {
  EXPECT_DOUBLE_EQ(ridge(hopper_device(), DType::bf16), 989.4 / 4.8);
  EXPECT_DOUBLE_EQ(ridge(hopper_device(), DType::bf16, false), 66.9 / 4.8);
}

TEST(Roofline, BoundsOfAProduct) {
  // 4096^3 in bf16: 2 * 4096^3 FLOPs over 3 * 4096^2 * 2 bytes, far right of the ridge.
  const Flops f(2LL * 4096 * 4096 * 4096);
  const Bytes in(2LL * 4096 * 4096 * 2), out(4096LL * 4096 * 2);
  const Roofline r = roofline(f, in, out, DType::bf16, true, hopper_device());
  EXPECT_DOUBLE_EQ(r.compute.value, 2.0 * 4096 * 4096 * 4096 / 989.4e12);
  EXPECT_DOUBLE_EQ(r.memory.value, 3.0 * 4096 * 4096 * 2 / 4.8e12);
  EXPECT_EQ(r.bound(), Bound::compute);
  EXPECT_EQ(r.time(), r.compute);
  EXPECT_DOUBLE_EQ(intensity(f, in + out), 4096.0 / 3.0);
}

TEST(Roofline, BoundsOfAMatrixVectorProductAndOfATinyOp) {
  const Roofline mv =
      roofline(Flops(2LL * 4096 * 4096), Bytes(2LL * 4096 * 4097), Bytes(2 * 4096), DType::bf16, true, hopper_device());
  EXPECT_EQ(mv.bound(), Bound::memory);
  EXPECT_EQ(mv.time(), mv.memory);
  const Roofline tiny = roofline(Flops{}, Bytes(512), Bytes(512), DType::bf16, false, hopper_device(), 3);
  EXPECT_EQ(tiny.bound(), Bound::launch);
  EXPECT_DOUBLE_EQ(tiny.time().us(), 3.0);
  EXPECT_EQ(tiny.compute.value, 0);
}

TEST(Roofline, TheBoundFlipsAtTheRidge) {
  Device d = hopper_device();
  d.kernel_floor = {1e-12};
  const Bytes moved(1'000'000'000);
  const auto at = [&](double per_byte) {
    return roofline(Flops(static_cast<std::int64_t>(per_byte * 1e9)), moved, Bytes{}, DType::bf16, true, d).bound();
  };
  const double r = ridge(d, DType::bf16);
  EXPECT_EQ(at(r * 1.001), Bound::compute);
  EXPECT_EQ(at(r * 0.999), Bound::memory);
}

TEST(Roofline, TiesGoToComputeThenMemory) {
  EXPECT_EQ((Roofline{{1}, {1}, {1}}.bound()), Bound::compute);
  EXPECT_EQ((Roofline{{0}, {1}, {1}}.bound()), Bound::memory);
  EXPECT_EQ((Roofline{{0}, {0}, {1}}.bound()), Bound::launch);
}

TEST(Roofline, AViewCostsNothing) {
  const Roofline r = roofline(Flops{}, Bytes{}, Bytes{}, DType::bf16, false, hopper_device(), 0);
  EXPECT_EQ(r.time().value, 0);
  EXPECT_EQ(intensity(Flops{}, Bytes{}), 0);
}

TEST(Roofline, NegativeCountsAreRefused) {
  const Device d = hopper_device();
  EXPECT_THROW(roofline(Flops(-1), Bytes{}, Bytes{}, DType::bf16, true, d), Error);
  EXPECT_THROW(roofline(Flops{}, Bytes(-1), Bytes{}, DType::bf16, true, d), Error);
  EXPECT_THROW(roofline(Flops{}, Bytes{}, Bytes(-1), DType::bf16, true, d), Error);
  EXPECT_THROW(roofline(Flops{}, Bytes{}, Bytes{}, DType::bf16, true, d, -1), Error);
}

TEST(Roofline, NamesOfBounds) {
  EXPECT_EQ(name(Bound::compute), "compute");
  EXPECT_EQ(name(Bound::memory), "memory");
  EXPECT_EQ(name(Bound::launch), "launch");
}

}  // namespace
}  // namespace vlmest::device_test
