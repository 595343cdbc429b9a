// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <bench/harness/axes.hpp>

/// Products to measure: a[m, k] x w[n, k]^T, as linear layers run them.
namespace vlmest::bench::linear_points {

inline OpJson linear(std::int64_t m, std::int64_t n, std::int64_t k, const char* dtype) {
  return {{"op", "linear"}, {"m", m}, {"n", n}, {"k", k}, {"dtype", dtype}};
}

/// Sizes over which time is smooth: rows in steps of a half octave and finer than a tile below 256, dimensions of
/// layers from 64 to 19,000.
inline std::vector<OpJson> grid() {
  return product("linear", {{"m", {1,   2,   4,    8,    16,   24,   32,   48,   64,   96,    128,   192,   256,  384,
                                   512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768}},
                            {"n", {64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 18944}},
                            {"k", {64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 18944}},
                            {"dtype", {"bf16"}}});
}

/// Steps of one tile of rows and one row more, where a wave of tiles ends: two widths that fill the device differently.
inline std::vector<OpJson> waves() {
  std::vector<OpJson> r;
  for (const std::int64_t width : {3584, 5120})
    for (std::int64_t tiles = 1; tiles <= 24; ++tiles)
      for (const std::int64_t more : {0, 1}) r.push_back(linear(128 * tiles + more, width, width, "bf16"));
  return r;
}

/// Dimensions that are multiples of `step` and of no larger power of two, in each place: kernels that load 16 bytes
/// want multiples of eight.
inline std::vector<OpJson> misaligned() {
  std::vector<OpJson> r;
  for (const std::int64_t m : {16, 256, 1024, 4096, 16384})
    for (const std::int64_t width : {512, 1280, 3424, 8192})
      for (const std::int64_t step : {1, 2, 4}) {
        r.push_back(linear(m, width + step, width, "bf16"));
        r.push_back(linear(m, width, width + step, "bf16"));
        r.push_back(linear(m, width + step, width + step, "bf16"));
        r.push_back(linear(m + step, width, width, "bf16"));
      }
  return r;
}

/// The other types on a coarse grid. An fp8 product wants multiples of 16 everywhere; fp32, outside the tensor cores,
/// takes long.
inline std::vector<OpJson> types() {
  std::vector<OpJson> r = product("linear", {{"m", {16, 64, 256, 1024, 4096, 16384}},
                                             {"n", {256, 1024, 4096, 12288}},
                                             {"k", {256, 1024, 4096, 12288}},
                                             {"dtype", {"fp16", "tf32", "fp8"}}});
  for (auto& op : product("linear", {{"m", {1, 16, 64, 250, 577, 1024, 2500}},
                                     {"n", {64, 256, 1024, 4096, 11008}},
                                     {"k", {64, 256, 1024, 4096, 11008}},
                                     {"dtype", {"fp32"}}}))
    r.push_back(std::move(op));
  return r;
}

/// Batched products: the scores of eager attention and their product with the values, experts.
inline std::vector<OpJson> batched() {
  return product("linear", {{"batch", {8, 32, 128}},
                            {"m", {64, 256, 1024, 2048}},
                            {"n", {64, 128, 1024, 2048}},
                            {"k", {64, 128, 1024}},
                            {"dtype", {"bf16"}}});
}

/// Log-uniform sizes over the whole range of vision-language models, one in four with odd dimensions.
inline std::vector<OpJson> random(Dice& dice, int count) {
  std::vector<OpJson> r;
  for (int i = 0; i < count; ++i) {
    const std::int64_t step = i % 4 == 0 ? 1 : 8;
    const std::int64_t m = dice.size(1, 33000);
    const std::int64_t n = dice.size(64, 19000, step);
    const std::int64_t k = dice.size(64, 19000, step);
    r.push_back(linear(m, n, k, "bf16"));
  }
  return r;
}

}  // namespace vlmest::bench::linear_points
