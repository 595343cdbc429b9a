// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <kernels/cuda/device.hpp>

/// GoogleTest's own main, except for the exit status 77 where nothing failed but, for want of a GPU, tests were
/// skipped.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  const bool skipped = ::testing::UnitTest::GetInstance()->skipped_test_count() > 0;
  return failed == 0 && skipped && !vlmest::cuda::available() ? 77 : failed;
}
