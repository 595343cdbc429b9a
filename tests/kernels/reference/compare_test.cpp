// SPDX-License-Identifier: Apache-2.0
#include "../compare.hpp"

#include <limits>

#include <gtest/gtest-spi.h>

#include "../tolerance.hpp"

namespace vlmest::kernels {
namespace {

const std::vector<double>& reference_values() {
  static const std::vector<double> values = Random().normal(100'000);
  return values;
}

TEST(RelativeError, IsTheNormOfTheDifferenceOverTheNorm) {
  const std::vector<double> reference{3, 4};
  const std::vector<double> out{3, 4.5};
  EXPECT_EQ(relative_error(reference, reference), 0);
  EXPECT_DOUBLE_EQ(relative_error(out, reference), 0.1);
}

TEST(RelativeError, NeverPassesWhatIsNotANumber) {
  const std::vector<double> reference{1, 2};
  const std::vector<double> hole{1, std::nan("")};
  EXPECT_TRUE(std::isnan(relative_error(hole, reference)));
  EXPECT_FALSE(relative_error(hole, reference) <= 1);
}

TEST(ExpectClose, TakesErrorsBelowTheTolerance) {
  auto out = reference_values();
  for (double& v : out) v *= 1 + 0.9e-3;
  expect_close(out, reference_values(), 1e-3);
}

TEST(ExpectClose, SeesASmallErrorEverywhere) {
  static auto out = reference_values();
  for (double& v : out) v *= 1 + 1.1e-3;
  EXPECT_NONFATAL_FAILURE(expect_close(out, reference_values(), 1e-3), "error");
}

TEST(ExpectClose, SeesOneWrongElementThatTheNormHides) {
  static auto out = reference_values();
  out[777] += 0.2;  // a fifth of a typical value: 6e-4 of the norm
  ASSERT_LT(relative_error(out, reference_values()), 1e-3);
  EXPECT_NONFATAL_FAILURE(expect_close(out, reference_values(), 1e-3), "element 777");
}

TEST(ExpectClose, SeesWhatWasNotWritten) {
  static auto out = reference_values();
  out[12'345] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FATAL_FAILURE(expect_close(out, reference_values(), 1e-3), "element 12345");
}

TEST(ExpectClose, RefusesAnEmptyOrZeroReference) {
  static const std::vector<double> zero(10);
  EXPECT_FATAL_FAILURE(expect_close(zero, zero, 1), "zero");
  EXPECT_FATAL_FAILURE(expect_close({}, {}, 1), "empty");
}

TEST(Tolerance, HasARowForEveryTypeThatKernelsTake) {
  for (const DType t :
       {DType::fp64, DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::fp8, DType::complex64}) {
    EXPECT_GT(tolerance(t), 0);
    EXPECT_LE(tolerance(t), 1e-2);
  }
  EXPECT_THROW(tolerance(DType::int8), Error);
}

}  // namespace
}  // namespace vlmest::kernels
