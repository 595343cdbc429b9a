// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

/// How the keys of one decode step are dealt out to blocks: plain arithmetic.
namespace vlmest::kernels::attention {

/// Keys that the four warps of a block take in one turn.
constexpr std::int64_t decode_keys_per_turn = 64;
/// The combining kernel has a thread for each split.
constexpr std::int64_t most_decode_splits = 128;

struct DecodeSplits {
  std::int64_t splits = 1;  ///< none of them empty
  std::int64_t keys = 0;    ///< per split, a multiple of decode_keys_per_turn; the last one may have fewer
};

/// `units` heads (times tiles of rows) of kv_len keys each on a device that runs `slots` blocks at a time. All blocks
/// read at the same rate, so that the time is the number of waves times the keys of a block and what it starts with and
/// ends in (as long as reading `block_overhead` keys); further splits than one cost a second kernel.
constexpr DecodeSplits choose_decode_splits(std::int64_t units, std::int64_t kv_len, std::int64_t slots) {
  constexpr std::int64_t block_overhead = 128;
  constexpr std::int64_t combine_overhead = 256;
  const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  DecodeSplits best;
  std::int64_t best_cost = INT64_MAX;
  for (std::int64_t wanted = 1; wanted <= most_decode_splits; ++wanted) {
    const std::int64_t keys = ceil_div(ceil_div(kv_len, wanted), decode_keys_per_turn) * decode_keys_per_turn;
    const std::int64_t splits = ceil_div(kv_len, keys);
    const std::int64_t waves = ceil_div(units * splits, slots);
    const std::int64_t cost = waves * (keys + block_overhead) + (splits > 1 ? combine_overhead : 0);
    if (cost < best_cost) {
      best_cost = cost;
      best = {splits, keys};
    }
  }
  return best;
}

}  // namespace vlmest::kernels::attention
