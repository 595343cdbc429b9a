// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vlmest::kernels {

/// Another one in every run, so that inputs are fresh; VLMEST_TEST_SEED repeats a run.
inline std::uint64_t fresh_seed() {
  if (const char* given = std::getenv("VLMEST_TEST_SEED")) return std::strtoull(given, nullptr, 10);
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

/// Random inputs of one test. Prints its seed, so that a failure can be repeated.
class Random {
 public:
  Random() : seed_(fresh_seed()), engine_(seed_) {
    ::testing::Test::RecordProperty("seed", std::to_string(seed_));
    std::printf("VLMEST_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
  }

  std::uint64_t seed() const { return seed_; }
  std::vector<double> uniform(std::int64_t n, double lo = -1, double hi = 1) {
    std::uniform_real_distribution<double> distribution(lo, hi);
    return filled(n, distribution);
  }
  std::vector<double> normal(std::int64_t n, double mean = 0, double deviation = 1) {
    std::normal_distribution<double> distribution(mean, deviation);
    return filled(n, distribution);
  }
  /// In 0 … bound - 1.
  std::vector<std::int64_t> indices(std::int64_t n, std::int64_t bound) {
    std::uniform_int_distribution<std::int64_t> distribution(0, bound - 1);
    std::vector<std::int64_t> r(static_cast<std::size_t>(n));
    for (auto& i : r) i = distribution(engine_);
    return r;
  }

 private:
  template <class Distribution>
  std::vector<double> filled(std::int64_t n, Distribution& distribution) {
    std::vector<double> r(static_cast<std::size_t>(n));
    for (double& v : r) v = distribution(engine_);
    return r;
  }

  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

/// norm(out - reference) / norm(reference) in double. NaN where any element is NaN, so that no comparison with a
/// tolerance passes.
inline double relative_error(std::span<const double> out, std::span<const double> reference) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    difference += (out[i] - reference[i]) * (out[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  return std::sqrt(difference) / std::sqrt(norm);
}

/// Asserts on the norm and on every element: one wrong value among a million hides in the norm. An element may be off
/// by `spread` tolerances of its own size or of the typical (root mean square) size, whichever is larger.
inline void expect_close(std::span<const double> out, std::span<const double> reference, double tolerance,
                         double spread = 8) {
  ASSERT_EQ(out.size(), reference.size());
  ASSERT_FALSE(reference.empty());
  double squares = 0;
  for (double v : reference) squares += v * v;
  ASSERT_TRUE(std::isfinite(squares) && squares > 0) << "the reference itself is zero or not finite";
  const double typical = std::sqrt(squares / static_cast<double>(reference.size()));
  std::size_t worst = 0;
  double worst_error = -1;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double error = std::abs(out[i] - reference[i]) / std::max(typical, std::abs(reference[i]));
    ASSERT_FALSE(std::isnan(error)) << "element " << i << " is " << out[i] << ", expected " << reference[i]
                                    << ": not written, or not a number";
    if (error > worst_error) worst = i, worst_error = error;
  }
  const double error = relative_error(out, reference);
  EXPECT_LE(error, tolerance) << "worst element " << worst << ": " << out[worst] << ", expected " << reference[worst];
  EXPECT_LE(worst_error, spread * tolerance)
      << "element " << worst << ": " << out[worst] << ", expected " << reference[worst];
  ::testing::Test::RecordProperty("relative_error", std::to_string(error));
}

}  // namespace vlmest::kernels
