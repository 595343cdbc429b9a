// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vlmest/op/cufft_passes.hpp>

namespace vlmest::cufft_passes_test {
namespace {

using Kind = Fft::Kind;

std::size_t kernels(Kind kind, std::int64_t batch, std::int64_t n) {
  return cufft::passes(Fft{.kind = kind, .batch = batch, .n = {n, 1, 1}, .rank = 1}).size();
}
std::size_t kernels(Kind kind, std::int64_t batch, std::int64_t h, std::int64_t w) {
  return cufft::passes(Fft{.kind = kind, .batch = batch, .n = {h, w, 1}}).size();
}

// Every number here is that of the kernels which cuFFT 12.0 was seen to launch on an H200.
TEST(CufftPasses, AKernelForEachPowerOfAPrime) {
  EXPECT_EQ(kernels(Kind::c2c, 1000, 1024), 1u);
  EXPECT_EQ(kernels(Kind::c2c, 13166, 488), 2u);
  EXPECT_EQ(kernels(Kind::c2c, 191, 516), 3u);
  EXPECT_EQ(kernels(Kind::c2c, 85, 6344), 3u);
  EXPECT_EQ(kernels(Kind::c2c, 5433, 11726), 4u);
  EXPECT_EQ(kernels(Kind::c2c, 2382, 17304), 4u);
}

TEST(CufftPasses, LargePowersAreSplit) {
  EXPECT_EQ(kernels(Kind::c2c, 244, 65536), 2u);
  EXPECT_EQ(kernels(Kind::c2c, 15, 1048576), 2u);
  EXPECT_EQ(kernels(Kind::c2c, 10, 100000), 3u);
  EXPECT_EQ(cufft::kernel_factors(1 << 11), (std::vector<std::int64_t>{64, 32}));
  EXPECT_EQ(cufft::kernel_factors(8 * 2187 * 5), (std::vector<std::int64_t>{8, 81, 27, 5}));
  EXPECT_EQ(cufft::kernel_factors(109 * 127), (std::vector<std::int64_t>{109, 127}));
}

TEST(CufftPasses, ConvolutionsTransformThereAndBack) {
  EXPECT_EQ(kernels(Kind::c2c, 60, 9895), 6u);     // 20000 = 32 * 625
  EXPECT_EQ(kernels(Kind::c2c, 94, 21975), 8u);    // 45000 = 8 * 9 * 625
  EXPECT_EQ(kernels(Kind::c2c, 13, 98994), 6u);    // 200000 = 64 * 3125
  EXPECT_EQ(kernels(Kind::c2c, 10, 77860), 8u);    // 156250 = 2 * 78125
  EXPECT_EQ(kernels(Kind::r2c, 5023, 12657), 6u);  // 25600 = 1024 * 25, and the pairs of rows
}

TEST(CufftPasses, RealRowsWithoutAKernelAreRepacked) {
  EXPECT_EQ(kernels(Kind::r2c, 1000, 1000), 1u);
  EXPECT_EQ(kernels(Kind::r2c, 12378, 3428), 2u);
  EXPECT_EQ(kernels(Kind::r2c, 12207, 239), 3u);
  EXPECT_EQ(kernels(Kind::c2r, 17750, 236), 3u);
  EXPECT_EQ(kernels(Kind::r2c, 5596, 1660), 4u);
}

TEST(CufftPasses, SmallSquaresTakeOneKernelWhereThereAreMany) {
  EXPECT_EQ(kernels(Kind::c2c, 976, 128, 128), 1u);
  EXPECT_EQ(kernels(Kind::c2c, 61, 128, 128), 2u);
  EXPECT_EQ(kernels(Kind::c2c, 434, 48, 48), 2u);
  EXPECT_EQ(kernels(Kind::c2c, 1054, 20, 20), 1u);
  EXPECT_EQ(kernels(Kind::c2c, 10204, 112, 112), 2u);
  EXPECT_EQ(kernels(Kind::r2c, 976, 128, 128), 2u);
  EXPECT_EQ(kernels(Kind::c2c, 8313, 85, 118), 4u);
}

TEST(CufftPasses, EachReadsWhatTheOneBeforeWrote) {
  for (const Kind kind : {Kind::c2c, Kind::r2c, Kind::c2r})
    for (const std::int64_t n : {64, 118, 239, 516, 6344, 10007, 65536}) {
      const Fft f{.kind = kind, .batch = 6, .n = {24, n, 1}};
      const auto passes = cufft::passes(f);
      EXPECT_EQ(passes.front().read, input_bytes(f)) << n;
      EXPECT_EQ(passes.back().written, output_bytes(f)) << n;
      for (std::size_t i = 1; i < passes.size(); ++i) EXPECT_EQ(passes[i].read, passes[i - 1].written) << n;
    }
  EXPECT_TRUE(cufft::passes(Fft{.batch = 9, .n = {1, 1, 1}}).empty());
}

}  // namespace
}  // namespace vlmest::cufft_passes_test
