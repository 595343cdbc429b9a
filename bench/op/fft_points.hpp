// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include <bench/harness/axes.hpp>

/// Transforms to measure: token grids of vision towers and long rows, by the classes of sizes that cuFFT treats
/// differently (powers of two; products of 2, 3, 5, 7; other small primes; large primes).
namespace vlmest::bench::fft_points {

inline OpJson grid(const char* op, std::int64_t batch, std::int64_t height, std::int64_t width) {
  return {{"op", op}, {"batch", batch}, {"height", height}, {"width", width}, {"dtype", "fp32"}};
}
inline OpJson row(const char* op, std::int64_t batch, std::int64_t width) {
  return {{"op", op}, {"batch", batch}, {"width", width}, {"dtype", "fp32"}};
}
/// So many that the points of all together are about `points`; at least one.
inline std::int64_t batch_for(double points, double each) {
  return static_cast<std::int64_t>(std::fmax(1, points / each));
}

inline std::vector<OpJson> sweep() {
  std::vector<OpJson> r;
  for (const double points : {1e6, 1.6e7, 1.28e8}) {
    for (const char* op : {"fft", "rfft", "irfft"})
      for (const std::int64_t n : {16,   24,   64,   100,  128,  243,  256,   343,   512,   577,    625,    1000,
                                   1024, 1009, 2048, 4096, 6561, 8192, 10007, 16384, 65536, 100000, 1048576})
        r.push_back(row(op, batch_for(points, static_cast<double>(n)), n));
    for (const char* op : {"fft2", "rfft2", "irfft2"})
      for (const std::int64_t n : {14, 16, 24, 27, 32, 37, 48, 56, 64, 96, 112, 128, 224, 256, 336, 512, 1024})
        r.push_back(grid(op, batch_for(points, static_cast<double>(n * n)), n, n));
  }
  return r;
}

inline std::vector<OpJson> random(Dice& dice, int count) {
  const std::vector<const char*> rows{"fft", "rfft", "irfft"}, grids{"fft2", "rfft2", "irfft2"};
  std::vector<OpJson> r;
  for (int i = 0; i < count; ++i) {
    const auto points = static_cast<double>(dice.size(300'000, 150'000'000));
    if (i % 2 == 0) {
      const std::int64_t n = dice.size(16, 100'000);
      r.push_back(row(dice.one_of(rows), batch_for(points, static_cast<double>(n)), n));
    } else {
      const std::int64_t h = dice.size(12, 600), w = dice.size(12, 600);
      r.push_back(grid(dice.one_of(grids), batch_for(points, static_cast<double>(h * w)), h, w));
    }
  }
  return r;
}

}  // namespace vlmest::bench::fft_points
