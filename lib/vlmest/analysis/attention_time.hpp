// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/analysis/matmul_time.hpp>
#include <vlmest/op/attention.hpp>

namespace vlmest {

namespace fused_attention {

/// Queries and keys of one step of a fused kernel's loop.
inline constexpr std::int64_t tile = 128;

/// The head size that a kernel computes with: its tiles come in 64, 128 and 256 columns, so that 72, 80 and 96 cost as
/// much as 128.
constexpr std::int64_t padded_head_dim(std::int64_t d) {
  std::int64_t p = 64;
  while (p < d) p = checked_mul(p, 2);
  return p;
}

/// Steps of all thread blocks of one head, and of the longest of them. A block owns a tile of queries and goes through
/// the keys that they see; with a causal mask the queries are the last q_len positions.
struct Steps {
  std::int64_t blocks = 0, total = 0, longest = 0;
};
constexpr Steps steps(const Attention& o) {
  Steps s;
  s.blocks = tiled::ceil_div(o.q_len, tile);
  const std::int64_t keys = tiled::ceil_div(o.kv_len, tile);
  s.longest = keys;
  if (!o.causal) {
    s.total = checked_mul(s.blocks, keys);
    return s;
  }
  // Block i sees the keys up to its last query: they grow by one tile from block to block, and the last sees all.
  const std::int64_t first = std::max<std::int64_t>(1, keys - s.blocks + 1), unseen = s.blocks - (keys - first + 1);
  s.total = checked_mul(first + keys, keys - first + 1) / 2 + unseen;
  return s;
}

}  // namespace fused_attention

/// How long a fused attention takes: blocks of 128 queries of one head, each a loop over the keys in steps of 128 (Dao,
/// FlashAttention-2, arXiv 2307.08691, section 3.1), handed to the multiprocessors one after the other. Equal blocks
/// come in waves; unequal ones of a causal mask end at most one block after the average (Graham, Bounds on
/// Multiprocessing Timing Anomalies, 1969). Where queries are few, kernels split the keys among blocks and read them at
/// the memory's speed.
inline TiledTime attention_time(const Attention& o, const Device& d, const AttentionEfficiency& e) {
  TiledTime r;
  const Cost c = cost(o);
  const auto units = static_cast<double>(d.multiprocessors);
  r.start = e.start;
  r.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  const std::int64_t width = fused_attention::padded_head_dim(std::max(o.head_dim, o.v_dim));
  const Seconds unmasked = width <= 64    ? e.step64
                           : width <= 128 ? e.step128
                                          : e.step256 * (static_cast<double>(width) / 256);
  const Seconds masked = o.mask == Bytes{} ? Seconds{} : o.kv_len % 2 == 0 ? e.mask : e.mask_odd;
  const double step = (unmasked + masked).value;
  const fused_attention::Steps one = fused_attention::steps(o);
  const auto heads = static_cast<double>(checked_mul(o.batch, o.heads));
  const double blocks = heads * static_cast<double>(one.blocks);
  const double waves = std::ceil(blocks / units);
  r.tiling = {.m = static_cast<int>(fused_attention::tile),
              .n = static_cast<int>(width),
              .split = 1,
              .tiles = static_cast<std::int64_t>(blocks)};
  if (o.q_len == 1) {  // keys are split until every multiprocessor has some; the products are nothing beside reading
    r.compute = e.block;
    r.start = e.start + e.combine;
  } else if (o.causal) {
    const double average = heads * static_cast<double>(one.total) / units;
    r.compute = {(average + e.longest * static_cast<double>(one.longest)) * step + blocks / units * e.block.value};
  } else {
    r.compute = {waves * (static_cast<double>(one.longest) * step + e.block.value)};
  }
  r.time = r.start + tiled::overlapped(r.compute, r.memory, e.overlap);
  return r;
}

/// The backward of the same: five products where the forward has two, in kernels that also read and write the
/// gradients.
inline TiledTime attention_time(const AttentionBackward& o, const Device& d, const AttentionEfficiency& e) {
  TiledTime r = attention_time(o.forward, d, e);
  const Cost c = cost(o);
  r.compute = r.compute * e.backward;
  r.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  r.start = e.start * static_cast<double>(std::max(1, c.kernels));
  r.time = r.start + tiled::overlapped(r.compute, r.memory, e.overlap);
  return r;
}

}  // namespace vlmest
