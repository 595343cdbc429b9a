// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// Multi-head latent attention (DeepSeek-AI, DeepSeek-V2, 2024, section 2.1): the cache holds one compressed row per
/// token, latent_dim values and rope_dim rotated key channels, from which every head's keys and values are projected
/// whenever attention runs. A query head has head_dim + rope_dim channels, a value head head_dim.
struct LatentAttention {
  std::int64_t latent_dim = 512;
  std::int64_t rope_dim = 64;
};

/// Modules with the names of transformers models/deepseek_v2, DeepseekV2Attention, without a compressed query.
struct LatentModules {
  Linear compress;  ///< kv_a_proj_with_mqa: hidden -> latent_dim + rope_dim
  RmsNorm norm;     ///< kv_a_layernorm
  Linear expand;    ///< kv_b_proj: latent_dim -> heads * 2 * head_dim
};

inline LatentModules make_latent(Context& c, const LatentAttention& g, std::int64_t hidden, std::int64_t heads,
                                 std::int64_t head_dim) {
  LatentModules m;
  m.compress = make_linear(c, "kv_a_proj_with_mqa", hidden, checked_add(g.latent_dim, g.rope_dim), false);
  m.norm = make_rms_norm(c, "kv_a_layernorm", g.latent_dim);
  m.expand = make_linear(c, "kv_b_proj", g.latent_dim, checked_mul(checked_mul(heads, head_dim), 2), false);
  return m;
}

/// Appends compressed rows [B, 1, S, latent_dim + rope_dim] to an entry and returns all of them as attention reads
/// them. Throws Error for group quantisation and sliding windows, which no latent cache has.
inline Value update_latent(Context& c, CacheLayer& layer, const Value& rows) {
  using namespace eager;
  if (layer.off) return rows;
  const DType t = rows.dtype(), stored = c.plan.kv.dtype.value_or(t);
  if (is_grouped(stored) || layer.window)
    throw Error("kv", "a latent cache is neither group-quantised nor sliding", "use bf16, fp16 or fp8");
  const bool first = !layer.keys;
  layer.seen += rows.size(2);
  Value fresh = stored == t ? rows : quantize(c, rows, stored, first ? &layer.scales : nullptr, numel(rows.shape()));
  const Value before = layer.keys;
  layer.keys = append(c, before, fresh, "latents");
  return stored == t ? layer.keys : dequantize(c, layer.keys, t);
}

/// q[B, H, S, head_dim + rope_dim] against all cached tokens; x[B, S, hidden] brings the new ones.
inline Attended latent_attention(Context& c, const LatentAttention& g, const LatentModules& m, Value q, const Value& x,
                                 const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  const std::int64_t batch = x.size(0), tokens = x.size(1), heads = q.size(1), head_dim = q.size(3) - g.rope_dim;
  Value compressed = forward(c, m.compress, x);
  Value latent = slice(compressed, -1, 0, g.latent_dim);
  latent = forward(c, m.norm, latent);
  Value k_rope = view(slice(compressed, -1, g.latent_dim, g.latent_dim + g.rope_dim), {batch, tokens, 1, g.rope_dim});
  k_rope = transpose(std::move(k_rope), 1, 2);
  Value q_rope = slice(q, -1, head_dim, q.size(3));
  apply_rope(c, q_rope, k_rope, positions);
  Value q_plain = slice(std::move(q), -1, 0, head_dim);
  Value query = cat(std::move(q_plain), std::move(q_rope), -1);
  Value rows = cat(unsqueeze(std::move(latent), 1), std::move(k_rope), -1);
  rows = update_latent(c, cache, rows);
  const std::int64_t all = rows.size(2);
  Value expanded = forward(c, m.expand, squeeze(slice(rows, -1, 0, g.latent_dim), 1));
  expanded = transpose(view(std::move(expanded), {batch, all, heads, 2 * head_dim}), 1, 2);
  Value shared = expand(slice(rows, -1, g.latent_dim, g.latent_dim + g.rope_dim), {batch, heads, all, g.rope_dim});
  Value k_plain = slice(expanded, -1, 0, head_dim);
  Value keys = cat(std::move(k_plain), std::move(shared), -1);
  Value values = slice(expanded, -1, head_dim, 2 * head_dim);
  // modeling_deepseek_v3.py: FlashAttention takes values of the queries' width only.
  const bool flash = c.attention() == AttentionKind::flash;
  if (flash) values = pad(values, -1, 0, g.rope_dim);
  Attended a = stacks::attend(c, {query, keys, values, mask, true});
  if (flash) a.out = slice(a.out, -1, 0, head_dim);
  return a;
}

}  // namespace vlmest
