// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/latent_attention.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The pre-norm decoder of Llama and those built like it: Mistral, Ministral 3 (queries scaled by their position),
/// Qwen2 (q, k, v biases), Qwen3 (per-head norms of q and k), Granite (embeddings and sums scaled), Phi-3 (q, k, v in
/// one linear, gate and up in another). transformers models/llama, mistral, ministral3, qwen2, qwen3, granite, phi3.
struct LlamaConfig {
  std::int64_t vocab = 32000;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 11008;
  std::int64_t layers = 32;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;
  std::int64_t head_dim = 128;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  bool project_first =
      false;  ///< all projections run before heads are split (Qwen2-VL, Mllama); the backward's order follows it
  bool query_scale = false;              ///< Ministral 3: queries grow with their position, as Llama 4's
  bool multipliers = false;              ///< Granite: embeddings and what goes into a sum are scaled
  bool packed = false;                   ///< Phi-3: one linear for q, k and v, one for gate and up
  std::optional<std::int64_t> longrope;  ///< Phi-3: beyond so many tokens other frequencies turn
  std::int64_t rotary_dim = 0;           ///< channels of a head that turn; 0: all
  bool residual_dropout = false;         ///< Phi-3: in training mode, before each sum
  bool attention_dropout = false;        ///< in training mode, of eager attention's weights
  Activation activation = Activation::silu;
  std::optional<std::int64_t> window;     ///< sliding window of the layers named in `sliding`
  std::vector<bool> sliding;              ///< per layer; empty: none
  std::optional<LatentAttention> latent;  ///< in the place of key and value heads
};

struct LlamaLayer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  LatentModules latent;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm;
  std::array<ScopeId, 2> dropouts{};  ///< Phi-3: resid_attn_dropout, resid_mlp_dropout
};

struct LlamaDecoder {
  const LlamaConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<LlamaLayer> layers;
  RmsNorm norm;
  Rope rope;
};

/// The parts of a layer in the order of LlamaDecoderLayer.__init__: attention, feed-forward, norms.
inline void make_llama_attention(Context& c, const LlamaConfig& g, LlamaLayer& l) {
  Module a(c, "self_attn");
  if (g.packed) {  // Phi3Attention.__init__
    const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
    l.attention.scope = a.scope;
    l.attention.out = make_linear(c, "o_proj", queries, g.hidden, false);
    l.attention.q = make_linear(c, "qkv_proj", g.hidden, checked_add(queries, checked_mul(keys, 2)), false);
    return;
  }
  if (g.latent) {
    l.attention.scope = a.scope;
    l.attention.q =
        make_linear(c, "q_proj", g.hidden, checked_mul(g.heads, checked_add(g.head_dim, g.latent->rope_dim)), false);
    l.latent = make_latent(c, *g.latent, g.hidden, g.heads, g.head_dim);
    l.attention.out = make_linear(c, "o_proj", checked_mul(g.heads, g.head_dim), g.hidden, g.o_bias);
    return;
  }
  l.attention = make_projections(c, grouped_query(g, g.qkv_bias, g.o_bias));
  if (g.qk_norm) {
    l.q_norm = make_rms_norm(c, "q_norm", g.head_dim);
    l.k_norm = make_rms_norm(c, "k_norm", g.head_dim);
  }
}
inline void make_llama_norms(Context& c, const LlamaConfig& g, LlamaLayer& l) {
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
}

inline LlamaLayer make_llama_layer(Context& c, const LlamaConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  LlamaLayer l{.scope = m.scope};
  make_llama_attention(c, g, l);
  l.mlp = g.packed ? make_packed_mlp(c, "mlp", g.hidden, g.intermediate, g.activation)
                   : make_gated_mlp(c, "mlp", g.hidden, g.intermediate, g.mlp_bias, g.activation);
  make_llama_norms(c, g, l);
  if (g.packed) l.dropouts = {c.b.child("resid_attn_dropout"), c.b.child("resid_mlp_dropout")};
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of LlamaModel.__init__.
inline LlamaDecoder make_decoder(Context& c, const LlamaConfig& g) {
  LlamaDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_llama_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.latent ? g.latent->rope_dim : g.rotary_dim > 0 ? g.rotary_dim : g.head_dim);
  return d;
}

inline Cache make_cache(const LlamaConfig& g) { return empty_cache(g.layers, g.sliding, g.window); }

/// modeling_phi3.py, Phi3Attention.forward: parts of the one linear's result, which is a variable of the caller.
inline Qkv take_apart(const LlamaConfig& g, const Value& qkv) {
  using namespace eager;
  const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
  Qkv y{slice(qkv, -1, 0, queries), slice(qkv, -1, queries, queries + keys),
        slice(qkv, -1, queries + keys, qkv.size(-1))};
  split_heads(y, g.head_dim);
  return y;
}

/// modeling_llama.py, LlamaAttention.forward (and Qwen3Attention with its norms before the transpose,
/// Ministral3Attention with its scale behind the rotation).
inline Attended self_attention(Context& c, const LlamaConfig& g, const LlamaLayer& l, const Value& x, const Value& mask,
                               const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const std::int64_t channels = g.latent ? checked_add(g.head_dim, g.latent->rope_dim) : g.head_dim;  // of a query head
  auto heads = [&](const Linear& p, const RmsNorm* norm) {
    Value y = view(forward(c, p, x), {batch, tokens, -1, channels});
    if (norm) y = forward(c, *norm, std::move(y));
    return transpose(std::move(y), 1, 2);
  };
  Value qkv, q, k, v;
  Attended a;
  if (g.packed) {
    qkv = forward(c, l.attention.q, x);
    Qkv y = take_apart(g, qkv);
    q = std::move(y.q);
    k = std::move(y.k);
    v = std::move(y.v);
  } else if (g.project_first) {
    Qkv y = project(c, l.attention, x);
    split_heads(y, channels);
    q = std::move(y.q);
    k = std::move(y.k);
    v = std::move(y.v);
  } else {
    q = heads(l.attention.q, g.qk_norm ? &l.q_norm : nullptr);
  }
  if (g.latent) {
    a = latent_attention(c, *g.latent, l.latent, std::move(q), x, mask, positions, cache);
  } else {
    if (!g.project_first && !g.packed) {
      k = heads(l.attention.k, g.qk_norm ? &l.k_norm : nullptr);
      v = heads(l.attention.v, nullptr);
    }
    g.packed ? apply_partial_rope(c, q, k, positions) : apply_rope(c, q, k, positions);
    if (g.query_scale && c.stack().scales_queries) q = scaled_query(q, positions.ids);
    update(c, cache, k, v);
    a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  }
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_llama.py, LlamaDecoderLayer.forward; `feed_forward` runs what stands in the place of its MLP.
template <class FeedForward>
Value llama_layer(Context& c, const LlamaConfig& g, const LlamaLayer& l, Value arg, const Value& mask,
                  const CosSin& positions, CacheLayer& cache, FeedForward&& feed_forward) {
  const auto attention = [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); };
  auto dropout_scope = l.dropouts.begin();
  const auto dropped = [&](const Value& x) {  // Phi3DecoderLayer.forward
    InScope in(c.b, *dropout_scope++);
    return dropout(c, x);
  };
  const auto sum = [&](const Value& residual, const Value& x) {
    if (g.multipliers) return stacks::add_scaled(c, residual, x);
    return eager::add(residual, g.residual_dropout ? dropped(x) : x);
  };
  return pre_norm_layer(c, l.scope, std::move(arg), l.input_norm, attention, l.post_attention_norm, feed_forward,
                        NoStep{}, NoStep{}, sum);
}

inline Value forward(Context& c, const LlamaConfig& g, const LlamaLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return llama_layer(c, g, l, std::move(arg), mask, positions, cache,
                     [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// All layers, those with a window under the mask for sliding ones.
inline Value llama_layers(Context& c, const LlamaConfig& g, const std::vector<LlamaLayer>& layers, const Value& embeds,
                          const Value& full, const Value& sliding, const Value& position_ids, const CosSin& positions,
                          Cache& cache) {
  Value x = embeds;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LlamaLayer& l = layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({entry.window ? 1 : 0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, entry.window ? sliding : full, positions, entry); });
  }
  return x;
}

/// modeling_llama.py, LlamaModel.forward: embeddings[B, S, hidden] -> normed hidden states. `given`: position_ids[B,
/// S], where the caller hands them over.
inline Value forward(Context& c, const LlamaDecoder& d, Value arg, const Value& attention_mask, Cache& cache,
                     const Value& given = {}) {
  using namespace eager;
  const LlamaConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t tokens = embeds.size(1);
  if (g.multipliers) embeds = mul_scalar(embeds);
  const Value position_ids = given ? given : text_positions(c, tokens);
  const bool any_full = std::count(g.sliding.begin(), g.sliding.end(), true) < g.layers;
  Value full, sliding;
  if (any_full) full = causal_mask(c, mask_shape(cache, embeds.size(0), tokens), attention_mask);
  if (g.window && !g.sliding.empty())
    sliding = causal_mask(c, mask_shape(cache, embeds.size(0), tokens, g.window), attention_mask);
  if (g.longrope) choose_frequencies(c, d.rope, position_ids, cache.layers.front().seen + tokens > *g.longrope);
  CosSin positions = forward(c, d.rope, position_ids);
  if (g.query_scale) positions.ids = position_ids;
  const Value x = llama_layers(c, g, d.layers, embeds, full, sliding, position_ids, positions, cache);
  return forward(c, d.norm, x);
}

}  // namespace vlmest
