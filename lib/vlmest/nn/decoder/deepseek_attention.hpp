// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// Multi-head latent attention (DeepSeek-AI, DeepSeek-V2, arXiv:2405.04434, section 2.1) as transformers 5.17 has it in
/// models/deepseek_v3 and models/mistral4. Defaults: DeepseekV3Config.
struct LatentHeads {
  std::int64_t hidden = 7168;
  std::int64_t heads = 128;
  std::int64_t q_rank = 1536;    ///< q_lora_rank; 0: queries are projected at once
  std::int64_t kv_rank = 512;    ///< kv_lora_rank: values of a token that are cached
  std::int64_t rope_dim = 64;    ///< qk_rope_head_dim: channels of a head that turn; the key's are shared and cached
  std::int64_t plain_dim = 128;  ///< qk_nope_head_dim: those that do not
  std::int64_t v_dim = 128;      ///< v_head_dim
  bool bias = false;             ///< attention_bias: of what compresses, and of the output
  bool dropout = false;          ///< attention_dropout, in training mode
  bool interleaved = true;       ///< rope_interleave: neighbouring channels turn against each other
  bool scaled_queries = false;   ///< by their position (modeling_mistral4.py, get_llama_4_attn_scale)

  std::int64_t qk_dim() const { return checked_add(plain_dim, rope_dim); }
};

struct DeepseekAttention {
  ScopeId scope = 0;
  Linear q, q_down, q_up;  ///< q_proj, or q_a_proj and q_b_proj
  Linear kv_down, kv_up, out;
  RmsNorm q_norm, kv_norm;

  TensorId first_parameter() const { return q.weight == none ? q_down.weight : q.weight; }
};

/// DeepseekV3Attention.__init__.
inline DeepseekAttention make_deepseek_attention(Context& c, const LatentHeads& g) {
  Module m(c, "self_attn");
  DeepseekAttention a{.scope = m.scope};
  const std::int64_t queries = checked_mul(g.heads, g.qk_dim());
  if (g.q_rank > 0) {
    a.q_down = make_linear(c, "q_a_proj", g.hidden, g.q_rank, g.bias);
    a.q_norm = make_rms_norm(c, "q_a_layernorm", g.q_rank);
    a.q_up = make_linear(c, "q_b_proj", g.q_rank, queries, false);
  } else {
    a.q = make_linear(c, "q_proj", g.hidden, queries, false);
  }
  a.kv_down = make_linear(c, "kv_a_proj_with_mqa", g.hidden, checked_add(g.kv_rank, g.rope_dim), g.bias);
  a.kv_norm = make_rms_norm(c, "kv_a_layernorm", g.kv_rank);
  a.kv_up = make_linear(c, "kv_b_proj", g.kv_rank, checked_mul(g.heads, checked_add(g.plain_dim, g.v_dim)), false);
  a.out = make_linear(c, "o_proj", checked_mul(g.heads, g.v_dim), g.hidden, g.bias);
  return a;
}

/// modeling_deepseek_v3.py, apply_rotary_pos_emb_interleave: even and odd channels turn against each other by the
/// angles' first half, and lie one after the other afterwards.
inline Value turn_pairs(const Value& even, const Value& odd, const Value& cos, const Value& sin) {
  using namespace eager;
  Value straight = mul(even, cos);
  Value across = mul(odd, sin);
  Value first = sub(std::move(straight), std::move(across));
  straight = mul(odd, cos);
  across = mul(even, sin);
  Value second = add(std::move(straight), std::move(across));
  return cat(std::move(first), std::move(second), -1);
}
inline void apply_interleaved_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const std::int64_t d = q.size(-1);
    Value cos = unsqueeze(slice(e.cos, -1, 0, d / 2), 1), sin = unsqueeze(slice(e.sin, -1, 0, d / 2), 1);
    const Value q_even = slice(q, -1, 0, d, 2), q_odd = slice(q, -1, 1, d, 2);
    const Value k_even = slice(k, -1, 0, d, 2), k_odd = slice(k, -1, 1, d, 2);
    Value turned_q = turn_pairs(q_even, q_odd, cos, sin);
    Value turned_k = turn_pairs(k_even, k_odd, cos, sin);
    q = std::move(turned_q);
    k = std::move(turned_k);
  });
}

struct KeysValues {
  Value keys, values;
};
/// DeepseekV3Attention.expand_kv: latents [B, 1, L, kv_rank] and shared keys [B, 1, L, rope_dim] to every head's keys
/// [B, H, L, qk_dim] and values [B, H, L, v_dim].
inline KeysValues expand_latents(Context& c, const LatentHeads& g, const DeepseekAttention& a, const Value& latents,
                                 const Value& turned) {
  using namespace eager;
  const std::int64_t batch = latents.size(0), tokens = latents.size(2);
  Value all = view(forward(c, a.kv_up, latents), {batch, tokens, g.heads, checked_add(g.plain_dim, g.v_dim)});
  all = transpose(std::move(all), 1, 2);
  const std::vector<Value> part = split(all, std::array{g.plain_dim, g.v_dim}, -1);
  const Value shared = expand(turned, {batch, g.heads, tokens, g.rope_dim});
  Value keys = stacks::join_channels(c, part[0], shared, [&] {
    Value both = empty(c.b, "new_empty", {batch, g.heads, tokens, g.qk_dim()}, all.dtype());
    both = copy_into(std::move(both), 0, g.plain_dim, part[0]);
    return copy_into(std::move(both), g.plain_dim, g.qk_dim(), shared);
  });
  return {std::move(keys), part[1]};
}

/// Channels by which values are widened for a FlashAttention kernel, which takes them as wide as keys only
/// (transformers 5.17 integrations/flash_attention.py, flash_attention_forward). Throws Error for values that are
/// wider than keys, whose result would be cut.
inline std::int64_t padding_for_flash(const Context& c, const LatentHeads& g) {
  const std::int64_t missing = checked_add(g.qk_dim(), -g.v_dim);
  if (c.attention() != AttentionKind::flash || missing == 0) return 0;
  if (missing < 0)
    throw Error("plan.attention",
                "FlashAttention-2 takes values as wide as keys, not " + std::to_string(g.v_dim) + " channels beside " +
                    std::to_string(g.qk_dim()),
                "give plan.attention=sdpa");
  return missing;
}

/// modeling_deepseek_v3.py, DeepseekV3Attention.forward, and modeling_mistral4.py, Mistral4Attention.forward: what is
/// cached is compressed, and expanded whenever attention runs.
inline Attended self_attention(Context& c, const LatentHeads& g, const DeepseekAttention& m, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, m.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  Value states;
  if (g.q_rank > 0) {
    Value low = forward(c, m.q_down, x);
    low = forward(c, m.q_norm, std::move(low));
    states = forward(c, m.q_up, std::move(low));
  } else {
    states = forward(c, m.q, x);
  }
  states = split_heads(std::move(states), g.qk_dim());
  const std::vector<Value> queries = split(states, std::array{g.plain_dim, g.rope_dim}, -1);
  Value q_turned = queries[1];
  const Value compressed = forward(c, m.kv_down, x);
  const std::vector<Value> parts = split(compressed, std::array{g.kv_rank, g.rope_dim}, -1);
  Value latents = view(forward(c, m.kv_norm, parts[0]), {batch, 1, tokens, g.kv_rank});
  Value k_turned = view(parts[1], {batch, 1, tokens, g.rope_dim});
  g.interleaved ? apply_interleaved_rope(c, q_turned, k_turned, positions)
                : apply_rope(c, q_turned, k_turned, positions);
  update(c, cache, latents, k_turned);
  Value q = cat(queries[0], q_turned, -1);
  if (g.scaled_queries && c.stack().scales_queries) q = scaled_query(q, positions.ids);
  KeysValues kv = expand_latents(c, g, m, latents, k_turned);
  const std::int64_t missing = padding_for_flash(c, g);
  if (missing > 0) kv.values = pad(kv.values, -1, 0, missing);
  Attended a =
      stacks::attend(c, {.q = q, .k = kv.keys, .v = kv.values, .mask = mask, .causal = true, .dropout = g.dropout});
  if (missing > 0) a.out = slice(a.out, -1, 0, g.v_dim);
  project_out(c, m.out, a);
  return a;
}

}  // namespace vlmest
