// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <vlmest/diagnose/evidence/text/memory_log.hpp>
#include <vlmest/diagnose/evidence/text/numerics.hpp>

namespace vlmest::numerics_test {
namespace {

using namespace diagnose;

const NumericFinding* found(const std::vector<NumericFinding>& all, NumericTrouble t) {
  for (const auto& f : all)
    if (f.trouble == t) return &f;
  return nullptr;
}

std::string steps(int n, double loss, double norm, int first = 0) {
  std::string s;
  for (int i = first; i < first + n; ++i)
    s += "step " + std::to_string(i) + " loss " + std::to_string(loss + 0.01 * (i % 3)) + " grad_norm " +
         std::to_string(norm + 0.05 * (i % 5)) + "\n";
  return s;
}

TEST(Numerics, ExplosionThenNaN) {
  const auto text = steps(20, 2.0, 1.0) + "step 20 loss 2.4 grad_norm 37.5\nstep 21 loss 9.1 grad_norm 912.0\n" +
                    "step 22 loss nan grad_norm nan\nstep 23 loss nan grad_norm nan\n";
  const auto all = numeric_findings(read_memory_log(text));
  const auto* explosion = found(all, NumericTrouble::exploding_gradient);
  ASSERT_TRUE(explosion);
  EXPECT_EQ(explosion->step, 20);
  EXPECT_EQ(explosion->value, 37.5);
  EXPECT_NEAR(explosion->usual, 1.1, 0.06);
  const auto* nan = found(all, NumericTrouble::nan_loss);
  ASSERT_TRUE(nan);
  EXPECT_EQ(nan->step, 22);
  EXPECT_EQ(nan->line, 23);
  EXPECT_EQ(nan->times, 2);
  EXPECT_TRUE(found(all, NumericTrouble::nan_gradient));
  const auto* spike = found(all, NumericTrouble::loss_spike);
  ASSERT_TRUE(spike);
  EXPECT_EQ(spike->step, 21);
}

TEST(Numerics, HealthyRunsHaveNone) {
  EXPECT_TRUE(numeric_findings(read_memory_log(steps(200, 2.0, 1.0))).empty());
  // One high norm that clipping took care of.
  EXPECT_TRUE(numeric_findings(
                  read_memory_log(steps(20, 2.0, 1.0) + "step 20 loss 2.0 grad_norm 37.5\n" + steps(20, 2.0, 1.0, 21)))
                  .empty());
  EXPECT_TRUE(numeric_findings({}).empty());
}

TEST(Numerics, WordsOfScalersAndChecks) {
  const auto all = numeric_messages(
      "step 1 loss 2\n"
      "[rank0]: Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0\n"
      "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0\n"
      "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.\n"
      "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.\n"
      "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0\n"
      "minimum loss so far; final answer is banana\n");
  const auto* skip = found(all, NumericTrouble::skipped_step);
  ASSERT_TRUE(skip);
  EXPECT_EQ(skip->line, 2);
  EXPECT_EQ(skip->times, 2);
  EXPECT_TRUE(skip->text.starts_with("Gradient overflow"));
  EXPECT_EQ(found(all, NumericTrouble::scale_at_minimum)->line, 4);
  EXPECT_EQ(found(all, NumericTrouble::anomaly)->line, 5);
  EXPECT_EQ(found(all, NumericTrouble::bad_probabilities)->line, 6);
  EXPECT_EQ(all.size(), 4u);
}

TEST(Numerics, WordsOfFairseqAndDetectron) {
  const auto all = numeric_messages(
      "| WARNING: overflow detected, setting loss scale to: 0.25\n"
      "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.\n"
      "FloatingPointError: Loss became infinite or NaN at iteration=437!\n");
  EXPECT_EQ(found(all, NumericTrouble::skipped_step)->line, 1);
  EXPECT_EQ(found(all, NumericTrouble::scale_at_minimum)->line, 2);
  EXPECT_EQ(found(all, NumericTrouble::nan_loss)->line, 3);
}

TEST(Numerics, HeadroomOfTheFft) {
  // 24 x 24 points of values up to 100 can sum to 57600: fits; 64 x 64 points to 409600: does not.
  EXPECT_TRUE(fft_headroom(24 * 24, 100).safe());
  const auto h = fft_headroom(64 * 64, 100);
  EXPECT_FALSE(h.safe());
  EXPECT_EQ(h.largest, 409600);
  EXPECT_NEAR(h.safe_input, 15.99, 0.01);
  EXPECT_NEAR(h.factor(), 0.16, 0.001);
  EXPECT_TRUE(fft_headroom(64 * 64, 100, FftScale::root).safe());
  EXPECT_EQ(fft_headroom(64 * 64, 100, FftScale::full).largest, 100);
  EXPECT_TRUE(fft_headroom(64 * 64, 100, FftScale::none, bf16_max).safe());
}

}  // namespace
}  // namespace vlmest::numerics_test
