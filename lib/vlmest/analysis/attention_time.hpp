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
constexpr std::int64_t padded_head_dim(const Attention& o) { return padded_head_dim(std::max(o.head_dim, o.v_dim)); }

/// The time of heads of a padded size, of the three that were measured; larger ones take as much longer as they are.
constexpr Seconds by_width(std::int64_t width, Seconds of64, Seconds of128, Seconds of256) {
  return width <= 64 ? of64 : width <= 128 ? of128 : of256 * (static_cast<double>(width) / 256);
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

/// A step of the loop, whose products take `scale` times those of the forward. A mask goes with
/// them (of recorded backwards with one, 2.7 to 3.8 times what it costs in the forward); the ends of ragged keys are
/// looked for once. A causal mask skips what it hides.
inline Seconds step_time(const Attention& o, const AttentionEfficiency& e, double scale) {
  const std::int64_t width = padded_head_dim(o);
  Seconds s = by_width(width, e.step64, e.step128, e.step256);
  if (o.mask > Bytes{}) {
    s += by_width(width, e.mask64, e.mask128, e.mask256);
    if (o.kv_len % 2 != 0) s += e.mask_odd;
  }
  s = s * scale;
  if (!o.causal && o.kv_len % tile != 0) s += e.ragged;
  return s;
}

/// The loops of all blocks. Equal blocks come in waves. Unequal
/// ones of a causal mask end at most one block after the average (Graham, Bounds on Multiprocessing Timing Anomalies,
/// 1969), and no later than if all were as long as the longest.
inline Seconds loops(const Attention& o, const Device& d, const AttentionEfficiency& e, double scale = 1) {
  const Steps one = steps(o);
  const std::int64_t width = padded_head_dim(o);
  const auto units = static_cast<double>(d.multiprocessors), longest = static_cast<double>(one.longest);
  const auto heads = static_cast<double>(checked_mul(o.batch, o.heads));
  const double blocks = heads * static_cast<double>(one.blocks);
  const double step = step_time(o, e, scale).value;
  const Seconds ends = e.block * (static_cast<double>(width) / 128) + (o.causal ? e.diagonal : Seconds{});
  const double block = ends.value * scale;
  double t = std::ceil(blocks / units) * (longest * step + block);
  if (o.causal) {
    const double average = heads * static_cast<double>(one.total) / units;
    t = std::min(t, (average + e.longest * longest) * step + std::max(1.0, blocks / units) * block);
  }
  return {t > 0 ? t * (1 + e.sustained * t / (t + e.boost.value)) : 0};
}

/// The loops of the memory-efficient kernel in fp32, which leaves the tensor cores alone: blocks of 64 queries, of one
/// query as well, steps of as many keys as the head is wide, up to 128 (torch, aten/src/ATen/native/transformers/cuda/
/// mem_eff_attention, fmha_cutlassF_f32_aligned_64x128_rf_sm80). Keys are never split.
inline Seconds fp32_loops(const Attention& o, const Device& d, const AttentionEfficiency& e) {
  constexpr std::int64_t rows = 64;
  const std::int64_t width = padded_head_dim(o), keys = std::min(width, tile), blocks = tiled::ceil_div(o.q_len, rows);
  const double rate = d.peaks.fp32.value * (width <= 64 ? e.fp32_64 : e.fp32_128) / d.multiprocessors;
  const double step = 4.0 * static_cast<double>(rows * keys * width) / rate;
  const auto heads = static_cast<double>(checked_mul(o.batch, o.heads)), units = static_cast<double>(d.multiprocessors);
  const auto longest = static_cast<double>(tiled::ceil_div(o.kv_len, keys));
  if (!o.causal || blocks == 1) return {std::ceil(heads * static_cast<double>(blocks) / units) * longest * step};
  // The blocks' last queries see from the first keys' end to all keys.
  const std::int64_t before = std::max<std::int64_t>(0, o.kv_len - o.q_len);
  const double first = std::ceil(static_cast<double>(before + rows) / static_cast<double>(keys));
  const double total = heads * static_cast<double>(blocks) * (first + longest) / 2;
  return {(total / units + e.longest * longest) * step};
}

/// Whether the memory-efficient kernel runs whose blocks keep their results in memory, because registers have no room
/// for a row (torch, .../mem_eff_attention, fmha_cutlassF_..._32x128_gmem_sm80).
constexpr bool is_wide(const Attention& o) {
  return o.backend == AttentionBackend::efficient && is_half(o.dtype) && std::max(o.head_dim, o.v_dim) > 128;
}

/// Its loops: blocks of 32 queries, of one query as well, steps of 128 keys. A multiprocessor with several blocks is
/// busy with one while another waits. Blocks of a causal mask end about one of the longest after the average.
inline Seconds wide_loops(const Attention& o, const Device& d, const AttentionEfficiency& e) {
  constexpr std::int64_t rows = 32;
  const std::int64_t blocks = tiled::ceil_div(o.q_len, rows), width = std::max(o.head_dim, o.v_dim);
  const auto heads = static_cast<double>(checked_mul(o.batch, o.heads)), units = static_cast<double>(d.multiprocessors),
             keys = static_cast<double>(tiled::ceil_div(o.kv_len, tile));
  Seconds step = e.wide_column * static_cast<double>(width);
  if (o.mask > Bytes{}) step += e.wide_mask;
  const double resident = std::ceil(heads * static_cast<double>(blocks) / units);
  const Seconds all = resident > 1 ? step * (resident * keys) : (step + e.wide_wait) * keys;
  if (!o.causal || blocks == 1) return all;
  // Block i sees the keys up to its last query.
  double total = 0;
  const std::int64_t before = std::max<std::int64_t>(0, o.kv_len - o.q_len);
  constexpr std::int64_t same = tile / rows;  // blocks whose last keys lie in one step
  for (std::int64_t i = 0; i < blocks; i += same)
    total += static_cast<double>(std::min(same, blocks - i)) *
             std::min(keys, static_cast<double>(tiled::ceil_div(before + (i + same) * rows, tile)));
  return {std::min(all.value, (step * (heads * total / units + keys)).value)};
}

/// How many blocks the keys of one tile of queries are split among. Kernels that have fewer tiles than half of the
/// multiprocessors halve the keys until there is a block for each multiprocessor; short keys stay whole.
constexpr std::int64_t splits(std::int64_t tiles, std::int64_t keys, std::int64_t units) {
  std::int64_t s = 1;
  if (keys <= 4 || tiles > units / 2) return s;
  while (s * tiles < units && 2 * s <= keys) s *= 2;
  return s;
}

}  // namespace fused_attention

/// How long attention of one query a sequence takes. The query heads that share keys are the rows of one tile (16 of
/// them), whose block goes through the keys in steps of 128. Two blocks share a multiprocessor, and those of a last
/// round find their places in pairs like the ones before; there is room for one only of heads of more than 128 columns,
/// and of the kernel that runs where the keys fill no second step. Where there are few blocks, the keys are split and a
/// second kernel joins the parts (Dao et al., Flash-Decoding, 2023).
inline OpTime decode_time(const Attention& o, const Device& d, const DecodeEfficiency& e) {
  using namespace fused_attention;
  constexpr std::int64_t rows = 16;
  OpTime r;
  const Cost c = cost(o);
  const std::int64_t units = d.multiprocessors, width = padded_head_dim(o), keys = tiled::ceil_div(o.kv_len, tile);
  const std::int64_t group = std::max<std::int64_t>(1, o.heads / std::max<std::int64_t>(1, o.kv_heads));
  const std::int64_t tiles = checked_mul(checked_mul(o.batch, o.kv_heads), tiled::ceil_div(group, rows));
  const std::int64_t split = splits(tiles, keys, units), blocks = checked_mul(tiles, split);
  r.tiling = {
      .m = static_cast<int>(rows), .n = static_cast<int>(width), .split = static_cast<int>(split), .tiles = blocks};
  const double alone =
      static_cast<double>(tiled::ceil_div(keys, split)) * by_width(width, e.step64, e.step128, e.step256).value +
      e.block.value * static_cast<double>(width) / 128;
  const std::int64_t resident = width <= 128 && keys > 1 && blocks > units ? 2 : 1;
  r.compute = {static_cast<double>(tiled::ceil_div(blocks, units * resident)) * alone *
               (resident == 2 ? e.shared : 1.0)};
  r.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  r.start = e.start;
  if (split > 1) r.start += e.combine + e.partial * static_cast<double>(checked_mul(blocks, rows * width));
  r.time = r.start + tiled::overlapped(r.compute, r.memory, e.overlap);
  return r;
}

/// How long a fused attention takes: blocks of 128 queries of one head, each a loop over the keys in steps of 128 (Dao,
/// FlashAttention-2, arXiv 2307.08691, section 3.1), handed to the multiprocessors one after the other.
inline OpTime attention_time(const Attention& o, const Device& d, const AttentionEfficiency& e) {
  const bool fp32 = o.dtype == DType::fp32;
  using namespace fused_attention;
  const bool wide = is_wide(o);
  if (o.q_len == 1 && !fp32 && !wide) return decode_time(o, d, e.decode);
  OpTime r;
  const Cost c = cost(o);
  const std::int64_t width = padded_head_dim(o);
  r.tiling = {.m = static_cast<int>(tile),
              .n = static_cast<int>(width),
              .split = 1,
              .tiles = checked_mul(checked_mul(o.batch, o.heads), tiled::ceil_div(o.q_len, tile))};
  r.compute = fp32 ? fp32_loops(o, d, e) : wide ? wide_loops(o, d, e) : loops(o, d, e);
  r.memory = (c.read + c.written) / Bandwidth{d.dram.value * e.bandwidth};
  r.start = e.start;
  r.time =
      r.start + (wide ? tiled::overlapped(r.compute, r.memory) : tiled::overlapped(r.compute, r.memory, e.overlap));
  return r;
}

/// The backward of the same: a loop with five products where the forward has two, between kernels that move bytes. Its
/// queries' gradients are summed in fp32: one kernel clears them and multiplies the result by its gradient, a last one
/// rounds them. Gradients of keys and values that query heads share are summed by two more kernels.
inline OpTime attention_time(const AttentionBackward& b, const Device& d, const AttentionEfficiency& e) {
  using namespace fused_attention;
  const Attention& o = b.forward;
  OpTime r;
  const Cost c = cost(b);
  const Bandwidth bandwidth{d.dram.value * e.bandwidth};
  const std::int64_t bh = checked_mul(o.batch, o.heads);
  r.compute = o.dtype == DType::fp32 ? fp32_loops(o, d, e) * e.backward : loops(o, d, e, e.backward);
  r.memory = (c.read + c.written) / bandwidth;
  const Elements queries{checked_mul(checked_mul(bh, o.q_len), o.head_dim)};
  const Elements results{checked_mul(checked_mul(bh, o.q_len), o.v_dim)};
  Bytes around = size_of(results, o.dtype) * 2 + size_of(queries, DType::fp32) * 2 + size_of(queries, o.dtype);
  int others = 2;
  if (o.heads != o.kv_heads) {
    others = 4;
    const std::int64_t each = checked_mul(checked_mul(o.batch, o.kv_len), checked_add(o.head_dim, o.v_dim));
    around += size_of(Elements(checked_mul(each, checked_add(o.heads, o.kv_heads))), o.dtype);
  }
  const Seconds moved = around / bandwidth;
  r.start = e.start + d.kernel_floor * static_cast<double>(others);
  r.time = r.start + tiled::overlapped(r.compute, r.memory, e.overlap) + moved;
  r.memory += moved;
  return r;
}

}  // namespace vlmest
