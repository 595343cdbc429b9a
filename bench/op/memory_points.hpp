// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <bench/harness/axes.hpp>

/// Ops to measure whose time is the bytes they move.
namespace vlmest::bench::memory_points {

inline OpJson stream(const char* op, std::int64_t elements, const char* dtype = "bf16") {
  return {{"op", op}, {"elements", elements}, {"dtype", dtype}};
}
inline OpJson rows(const char* op, std::int64_t n, std::int64_t width, const char* dtype = "bf16") {
  return {{"op", op}, {"rows", n}, {"width", width}, {"dtype", dtype}};
}

/// Element by element: 4 KiB to 2 GiB a tensor in half octaves, where launch, ramp and bandwidth take over in turn.
inline std::vector<OpJson> streams() {
  std::vector<OpJson> r;
  for (const char* op : {"copy", "read", "write", "add", "silu_mul"})
    for (std::int64_t n = 2048; n <= std::int64_t{1} << 30; n *= 2) {
      r.push_back(stream(op, n));
      if (n < std::int64_t{1} << 30) r.push_back(stream(op, n + n / 2));
    }
  for (std::int64_t n = 2048; n <= std::int64_t{1} << 28; n *= 8) r.push_back(stream("add", n, "fp32"));
  return r;
}

/// Normalisations and softmax over rows of hidden sizes and sequence lengths.
inline std::vector<OpJson> normalisations() {
  std::vector<OpJson> r;
  for (const std::int64_t n : {1, 16, 256, 2048, 16384, 131072})
    for (const std::int64_t width : {128, 1024, 1152, 2048, 3584, 4096, 8192})
      for (const char* op : {"rmsnorm", "layernorm", "softmax"}) r.push_back(rows(op, n, width));
  return r;
}

/// A few of each that stay in the L2 cache, to be measured there.
inline std::vector<OpJson> cached() {
  std::vector<OpJson> r;
  for (const char* op : {"copy", "read", "write", "add", "silu_mul"})
    for (std::int64_t n = 4096; n <= std::int64_t{1} << 22; n *= 4) r.push_back(stream(op, n));
  for (const char* op : {"rmsnorm", "layernorm", "softmax"})
    for (const std::int64_t n : {16, 256, 2048})
      for (const std::int64_t width : {128, 1152, 4096}) r.push_back(rows(op, n, width));
  for (auto& op : product("rope", {{"rows", {1, 64, 512, 2048}},
                                   {"heads", {28, 32}},
                                   {"kv_heads", {4}},
                                   {"head_dim", {128}},
                                   {"dtype", {"bf16"}}}))
    r.push_back(std::move(op));
  return r;
}

/// Rotations, gathers and losses of language models.
inline std::vector<OpJson> model_ops() {
  std::vector<OpJson> r = product("rope", {{"batch", {1, 4}},
                                           {"rows", {1, 64, 512, 4096, 16384}},
                                           {"heads", {28, 32}},
                                           {"kv_heads", {4, 8}},
                                           {"head_dim", {128}},
                                           {"dtype", {"bf16"}}});
  for (auto& op : product("embedding", {{"rows", {1, 64, 1024, 16384, 65536}},
                                        {"width", {896, 4096, 8192}},
                                        {"vocab", {32064, 152064}},
                                        {"dtype", {"bf16"}}}))
    r.push_back(std::move(op));
  for (auto& op :
       product("cross_entropy", {{"rows", {64, 1024, 8192}}, {"vocab", {32064, 152064}}, {"dtype", {"fp32"}}}))
    r.push_back(std::move(op));
  return r;
}

inline std::vector<OpJson> random(Dice& dice, int count) {
  const std::vector<const char*> streamed{"copy", "add", "silu_mul"}, normal{"rmsnorm", "layernorm", "softmax"};
  std::vector<OpJson> r;
  for (int i = 0; i < count; ++i) {
    // One draw a statement: in one argument list compilers draw in orders of their own.
    if (i % 2 == 0) {
      const std::int64_t elements = dice.size(2048, 1'000'000'000, 8);
      r.push_back(stream(dice.one_of(streamed), elements));
    } else {
      const std::int64_t width = dice.size(64, 16384, 8);
      const std::int64_t count_of_rows = dice.size(1, 500'000'000 / width);
      r.push_back(rows(dice.one_of(normal), count_of_rows, width));
    }
  }
  return r;
}

}  // namespace vlmest::bench::memory_points
