// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <bench/harness/axes.hpp>

/// Attention to measure, as scaled_dot_product_attention is called.
namespace vlmest::bench::attention_points {

inline OpJson sdpa(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads, std::int64_t q_len,
                   std::int64_t kv_len, std::int64_t head_dim, bool causal) {
  return {{"op", "sdpa"},     {"batch", batch},       {"heads", heads},   {"kv_heads", kv_heads}, {"q_len", q_len},
          {"kv_len", kv_len}, {"head_dim", head_dim}, {"causal", causal}, {"dtype", "bf16"}};
}

/// Operations of both products; points above `most` take longer than they tell.
inline double flops(std::int64_t batch, std::int64_t heads, std::int64_t q_len, std::int64_t kv_len, std::int64_t dim) {
  return 4.0 * static_cast<double>(batch * heads) * static_cast<double>(q_len) * static_cast<double>(kv_len) *
         static_cast<double>(dim);
}
inline constexpr double most = 2e13;
/// Bytes of keys and values of a decoding step in bf16; above this nothing new is seen.
inline constexpr double most_cache = 8e9;
inline double cache_bytes(std::int64_t batch, std::int64_t kv_heads, std::int64_t kv_len, std::int64_t dim) {
  return 4.0 * static_cast<double>(batch * kv_heads) * static_cast<double>(kv_len) * static_cast<double>(dim);
}

/// Whole sequences: vision towers (not causal, heads of 64 to 80) and prefills (causal, up to 16,384). Fewer points
/// than other ops have, because a plan of cuDNN's takes long to make.
inline std::vector<OpJson> prefill() {
  std::vector<OpJson> r;
  for (const std::int64_t dim : {64, 72, 80, 128, 256})
    for (const bool causal : {false, true})
      for (const std::int64_t heads : {16, 64, 256})
        for (const std::int64_t len : {64, 128, 256, 576, 1024, 2048, 4096, 8192, 16384})
          if (flops(1, heads, len, len, dim) <= most) r.push_back(sdpa(1, heads, heads, len, len, dim, causal));
  for (const std::int64_t batch : {1, 4})
    for (const std::int64_t len : {256, 512, 1024, 2048, 4096, 8192})
      r.push_back(sdpa(batch, 32, 8, len, len, 128, true));
  return r;
}

/// One query over a cache.
inline std::vector<OpJson> decode() {
  std::vector<OpJson> r;
  for (const std::int64_t dim : {64, 128, 256})
    for (const auto& [heads, kv_heads] : {std::pair{32, 32}, {32, 8}, {28, 4}})
      for (const std::int64_t batch : {1, 8, 64})
        for (const std::int64_t len : {256, 1024, 2048, 4096, 16384, 131072})
          if (cache_bytes(batch, kv_heads, len, dim) <= most_cache)
            r.push_back(sdpa(batch, heads, kv_heads, 1, len, dim, false));
  return r;
}

/// Random lengths, batches and heads: two in three whole sequences, the others decoding steps.
inline std::vector<OpJson> random(Dice& dice, int count) {
  const std::vector<std::int64_t> dims{64, 72, 80, 96, 128, 256};
  const std::vector<std::pair<std::int64_t, std::int64_t>> groups{{16, 16}, {32, 32}, {32, 8}, {28, 4}, {14, 2}};
  std::vector<OpJson> r;
  while (static_cast<int>(r.size()) < count) {
    const auto [heads, kv_heads] = dice.one_of(groups);
    const std::int64_t dim = dice.one_of(dims);
    if (r.size() % 3 == 2) {
      const std::int64_t batch = dice.size(1, 64), len = dice.size(64, 65536);
      if (cache_bytes(batch, kv_heads, len, dim) <= most_cache)
        r.push_back(sdpa(batch, heads, kv_heads, 1, len, dim, false));
    } else {
      const std::int64_t batch = dice.size(1, 16), len = dice.size(64, 16384);
      const bool causal = dice.uniform() < 0.5;
      if (flops(batch, heads, len, len, dim) <= most) r.push_back(sdpa(batch, heads, kv_heads, len, len, dim, causal));
    }
  }
  return r;
}

}  // namespace vlmest::bench::attention_points
