// SPDX-License-Identifier: Apache-2.0
#include "shipped.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

namespace vlmest::tool::shipped_test {
namespace {

TEST(ShippedFiles, AreTheSourcesOfABuildTree) {
  unsetenv("VLMEST_MODELS");
  EXPECT_EQ(shipped_models(), std::filesystem::path(VLMEST_SOURCE_DIR) / "models");
}

TEST(ShippedFiles, AreWhereTheEnvironmentSays) {
  setenv("VLMEST_MODELS", "/elsewhere", 1);
  EXPECT_EQ(shipped_models(), "/elsewhere");
  setenv("VLMEST_MODELS", "", 1);
  EXPECT_EQ(shipped_models(), std::filesystem::path(VLMEST_SOURCE_DIR) / "models");
  unsetenv("VLMEST_MODELS");
}

}  // namespace
}  // namespace vlmest::tool::shipped_test
