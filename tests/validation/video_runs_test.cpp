// SPDX-License-Identifier: Apache-2.0
// Whole models on videos: tests/data/measured/video.json, `vlmest validate` over it with --models tests/data/configs.
#include <cmath>

#include <gtest/gtest.h>

#include "measured.hpp"

namespace vlmest::video_runs_test {
namespace {

TEST(VideoRuns, PeaksAreThoseMeasured) {
  int prefills = 0, steps = 0;
  for (const Comparison& c : validation::compare(VLMEST_SOURCE_DIR, {"../../data/measured/video.json"})) {
    const double off = std::abs(c.error());
    if (c.quantity == "seq") {
      EXPECT_EQ(off, 0) << c.row;
    }
    if (c.quantity == "prefill_peak") {
      ++prefills;
      EXPECT_LT(off, 0.02) << c.row;
    }
    if (c.quantity == "forward_peak" || c.quantity == "backward_peak" || c.quantity == "step_peak") {
      ++steps;
      EXPECT_LT(off, 0.2) << c.row;
    }
  }
  EXPECT_EQ(prefills, 8);
  EXPECT_EQ(steps, 12);
}

}  // namespace
}  // namespace vlmest::video_runs_test
