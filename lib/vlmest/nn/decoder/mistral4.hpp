// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/moe.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/experts.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The decoder of Mistral Small 4 (transformers models/mistral4): multi-head latent attention (DeepSeek-AI,
/// DeepSeek-V2, 2024, section 2.1) with compressed queries, which are scaled by their position; experts beside shared
/// ones in all layers but the first few.
struct Mistral4Config {
  std::int64_t vocab = 131072;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 12288;  ///< of the dense layers
  std::int64_t layers = 36;
  std::int64_t heads = 32;
  std::int64_t q_rank = 1024;   ///< q_lora_rank; 0: queries are projected at once
  std::int64_t kv_rank = 256;   ///< kv_lora_rank: values of a token that are cached
  std::int64_t rope_dim = 64;   ///< qk_rope_head_dim: channels of a head that turn; the key's are shared and cached
  std::int64_t plain_dim = 64;  ///< qk_nope_head_dim: those that do not
  std::int64_t v_dim = 128;     ///< v_head_dim
  bool attention_bias = false;
  bool attention_dropout = false;  ///< in training mode
  bool interleaved = true;         ///< rope_interleave: neighbouring channels turn against each other
  MoeConfig moe{.hidden = 4096, .inner = 2048, .experts = 128, .top_k = 4};
  std::int64_t shared_experts = 1;
  std::int64_t groups = 1;        ///< n_group: experts are chosen from the best topk_group of these
  std::int64_t top_groups = 1;    ///< topk_group
  bool normalised = true;         ///< norm_topk_prob
  std::int64_t dense_layers = 0;  ///< first_k_dense_replace
  Activation activation = Activation::silu;

  std::int64_t qk_dim() const { return checked_add(plain_dim, rope_dim); }
  bool sparse(std::int64_t layer) const { return layer >= dense_layers; }
};

struct Mistral4Layer {
  ScopeId scope = 0, attention_scope = 0;
  Linear q, q_down, q_up;  ///< q_proj, or q_a_proj and q_b_proj
  Linear kv_down, kv_up, out;
  RmsNorm q_norm, kv_norm;
  bool sparse = false;
  Moe moe;
  GatedMlp mlp;  ///< the dense layers', or the shared experts
  RmsNorm input_norm, post_attention_norm;

  TensorId first_parameter() const { return q.weight == none ? q_down.weight : q.weight; }
};

struct Mistral4Decoder {
  const Mistral4Config* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Mistral4Layer> layers;
  RmsNorm norm;
  Rope rope;
};

/// Mistral4Attention.__init__.
inline void make_mistral4_attention(Context& c, const Mistral4Config& g, Mistral4Layer& l) {
  Module a(c, "self_attn");
  l.attention_scope = a.scope;
  const std::int64_t queries = checked_mul(g.heads, g.qk_dim());
  if (g.q_rank > 0) {
    l.q_down = make_linear(c, "q_a_proj", g.hidden, g.q_rank, g.attention_bias);
    l.q_norm = make_rms_norm(c, "q_a_layernorm", g.q_rank);
    l.q_up = make_linear(c, "q_b_proj", g.q_rank, queries, false);
  } else {
    l.q = make_linear(c, "q_proj", g.hidden, queries, false);
  }
  l.kv_down = make_linear(c, "kv_a_proj_with_mqa", g.hidden, checked_add(g.kv_rank, g.rope_dim), g.attention_bias);
  l.kv_norm = make_rms_norm(c, "kv_a_layernorm", g.kv_rank);
  l.kv_up = make_linear(c, "kv_b_proj", g.kv_rank, checked_mul(g.heads, checked_add(g.plain_dim, g.v_dim)), false);
  l.out = make_linear(c, "o_proj", checked_mul(g.heads, g.v_dim), g.hidden, g.attention_bias);
}

inline Mistral4Layer make_mistral4_layer(Context& c, const Mistral4Config& g, std::int32_t index) {
  Module m(c, "layers", index);
  Mistral4Layer l;
  l.scope = m.scope;
  make_mistral4_attention(c, g, l);
  l.sparse = g.sparse(index);
  if (l.sparse) {
    l.moe = make_moe(c, "mlp", g.moe);
    InScope in(c.b, l.moe.scope);
    l.mlp =
        make_gated_mlp(c, "shared_experts", g.hidden, checked_mul(g.moe.inner, g.shared_experts), false, g.activation);
  } else {
    l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  }
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of Mistral4Model.__init__.
inline Mistral4Decoder make_decoder(Context& c, const Mistral4Config& g) {
  Mistral4Decoder d;
  d.config = &g;
  d.scope = c.b.scope();
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_mistral4_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.rope_dim);
  return d;
}

inline Cache make_cache(const Mistral4Config& g) { return empty_cache(g.layers); }

/// modeling_mistral4.py, apply_rotary_pos_emb_interleave: even and odd channels turn against each other by the angles'
/// first half, and lie one after the other afterwards.
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
/// Mistral4Attention.expand_kv: latents [B, 1, L, kv_rank] and shared keys [B, 1, L, rope_dim] to every head's keys
/// [B, H, L, qk_dim] and values [B, H, L, v_dim].
inline KeysValues expand_latents(Context& c, const Mistral4Config& g, const Mistral4Layer& l, const Value& latents,
                                 const Value& turned) {
  using namespace eager;
  const std::int64_t batch = latents.size(0), tokens = latents.size(2);
  Value all = view(forward(c, l.kv_up, latents), {batch, tokens, g.heads, checked_add(g.plain_dim, g.v_dim)});
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

/// Channels by which values are widened for a FlashAttention kernel, which takes them as wide as keys only:
/// where a stack does so in every model, as modeling_deepseek_v3.py. Throws Error where the model does not
/// (modeling_mistral4.py).
inline std::int64_t padding_for_flash(const Context& c, const Mistral4Config& g) {
  const std::int64_t missing = checked_add(g.qk_dim(), -g.v_dim);
  const bool flash = c.attention() == AttentionKind::flash;
  if (!flash || missing == 0) return 0;
  if (!c.stack().pads_values || missing < 0)
    throw Error("plan.attention",
                "FlashAttention-2 takes values as wide as keys, not " + std::to_string(g.v_dim) + " channels beside " +
                    std::to_string(g.qk_dim()),
                "give plan.attention=sdpa");
  return missing;
}

/// modeling_mistral4.py, Mistral4Attention.forward: what is cached is compressed, and expanded whenever attention runs.
inline Attended self_attention(Context& c, const Mistral4Config& g, const Mistral4Layer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  Value states;
  if (g.q_rank > 0) {
    Value low = forward(c, l.q_down, x);
    low = forward(c, l.q_norm, std::move(low));
    states = forward(c, l.q_up, std::move(low));
  } else {
    states = forward(c, l.q, x);
  }
  states = split_heads(std::move(states), g.qk_dim());
  const std::vector<Value> queries = split(states, std::array{g.plain_dim, g.rope_dim}, -1);
  Value q_turned = queries[1];
  const Value compressed = forward(c, l.kv_down, x);
  const std::vector<Value> parts = split(compressed, std::array{g.kv_rank, g.rope_dim}, -1);
  Value latents = view(forward(c, l.kv_norm, parts[0]), {batch, 1, tokens, g.kv_rank});
  Value k_turned = view(parts[1], {batch, 1, tokens, g.rope_dim});
  g.interleaved ? apply_interleaved_rope(c, q_turned, k_turned, positions)
                : apply_rope(c, q_turned, k_turned, positions);
  update(c, cache, latents, k_turned);
  Value q = cat(queries[0], q_turned, -1);
  if (c.stack().scales_queries) q = scaled_query(q, positions.ids);
  KeysValues kv = expand_latents(c, g, l, latents, k_turned);
  const std::int64_t missing = padding_for_flash(c, g);
  if (missing > 0) kv.values = pad_last(kv.values, 0, missing);
  Attended a = stacks::attend(
      c, {.q = q, .k = kv.keys, .v = kv.values, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  if (missing > 0) a.out = slice(a.out, -1, 0, g.v_dim);
  project_out(c, l.out, a);
  return a;
}

/// Mistral4TopkRouter.forward: the softmax over all experts in the logits' type; experts outside the best groups count
/// as zero when the top k are chosen.
inline Routing route_grouped(Context& c, const Mistral4Config& g, const Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.router_scope);
  const Value flat = view(x, {-1, g.moe.hidden});
  const std::int64_t tokens = flat.size(0), each = g.moe.experts / g.groups;
  Routing r;
  r.logits = linear(flat, Value(c.b, m.router), {});
  const Value scores = softmax(r.logits);
  Value best = topk(view(scores, {tokens, g.groups, each}), 2).values;
  const Value group_scores = sum(std::move(best), -1, false);
  const Value chosen = topk(group_scores, g.top_groups, false).indices;
  Value group_mask = fill(c.b, "zeros_like", group_scores.shape(), group_scores.dtype());
  const MemoryOp ones{.read = data_bytes(chosen), .written = data_bytes(chosen), .dtype = group_mask.dtype()};
  Value places = chosen;
  group_mask = emit_inplace(c.b, "scatter_.value", ones, {}, group_mask, places);
  const Value mask = reshape(expand(unsqueeze(group_mask, -1), {tokens, g.groups, each}), {tokens, g.moe.experts});
  Value outside = to(mask, DType::boolean);
  outside = pointwise("bitwise_not", DType::boolean, std::move(outside));
  const Value eligible = masked_fill(scores, std::move(outside));
  r.experts = topk(eligible, g.moe.top_k, false).indices;
  r.weights = gather_columns(scores, r.experts);
  Value denominator;
  if (g.normalised) {
    denominator = add_scalar(sum(r.weights, -1, true));
    r.weights = div_(std::move(r.weights), denominator);
  }
  r.weights = mul_scalar(r.weights);
  return r;
}

/// Mistral4MoE.forward: experts, then the shared ones over the same input.
inline Value sparse_forward(Context& c, const Mistral4Config& g, const Mistral4Layer& l, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.moe.scope);
  const Value residuals = x;
  const Shape s = x.shape();
  const Routing r = stacks::route(c, [&] { return route_grouped(c, g, l.moe, x); });
  x = view(x, {-1, g.moe.hidden});
  x = view(stacks::experts(c, l.moe, x, r), s);
  Value shared = forward(c, l.mlp, residuals);
  return add(x, std::move(shared));
}

inline Value forward(Context& c, const Mistral4Config& g, const Mistral4Layer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.post_attention_norm,
      [&](const Value& x) { return l.sparse ? sparse_forward(c, g, l, x) : forward(c, l.mlp, x); });
}

/// Mistral4Model.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const Mistral4Decoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const Mistral4Config& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  CosSin positions = forward(c, d.rope, position_ids);
  positions.ids = position_ids;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Mistral4Layer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({l.sparse ? 1 : 0, l.scope, l.first_parameter()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
