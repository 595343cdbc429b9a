// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/decoder/glm4v_text.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// GLM-4 (transformers models/glm) and GLM-4-0414 (models/glm4, with norms after attention and MLP too): the layers of
/// GLM-4.1V's text model under positions of one axis, each projection split into heads before the next one runs.
/// Defaults: GlmConfig and Glm4Config, which agree.
struct GlmConfig {
  std::int64_t vocab = 151552;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 13696;
  std::int64_t layers = 40;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 128;
  std::int64_t rotary_dim = 64;  ///< head_dim times partial_rotary_factor
  bool qkv_bias = true;          ///< attention_bias
  bool sandwich = false;         ///< glm4
  Activation activation = Activation::silu;
};

struct GlmDecoder {
  const GlmConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Glm4vTextLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline Cache make_cache(const GlmConfig& g) { return empty_cache(g.layers); }

/// In the order of Glm4DecoderLayer.__init__ and GlmDecoderLayer.__init__.
inline Glm4vTextLayer make_glm_layer(Context& c, const GlmConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  Glm4vTextLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.qkv_bias, false));
  }
  l.mlp = make_glm_mlp(c, g.hidden, g.intermediate);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  if (g.sandwich) {
    l.post_self_attn_norm = make_rms_norm(c, "post_self_attn_layernorm", g.hidden);
    l.post_mlp_norm = make_rms_norm(c, "post_mlp_layernorm", g.hidden);
  }
  return l;
}

/// In the order of Glm4Model.__init__.
inline GlmDecoder make_decoder(Context& c, const GlmConfig& g) {
  GlmDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_glm_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.rotary_dim);
  return d;
}

/// modeling_glm4.py, apply_rotary_pos_emb: half of cos and sin, each entry twice, made anew in every layer.
inline void apply_glm_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const std::int64_t half = e.cos.size(-1) / 2;
    const Value cos = repeat_each(slice(unsqueeze(e.cos, 1), -1, 0, half));
    const Value sin = repeat_each(slice(unsqueeze(e.sin, 1), -1, 0, half));
    turn_pairs_of(q, k, cos, sin);
  });
}

/// modeling_glm4.py, Glm4Attention.forward.
inline Attended self_attention(Context& c, const GlmConfig& g, const Glm4vTextLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  InScope in(c.b, l.attention.scope);
  const auto heads = [&](const Linear& p) { return split_heads(forward(c, p, x), g.head_dim); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  Value v = heads(l.attention.v);
  apply_glm_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_glm4.py, Glm4DecoderLayer.forward; modeling_glm.py without the norms after each half.
inline Value forward(Context& c, const GlmConfig& g, const Glm4vTextLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.post_attention_norm,
      [&](const Value& x) { return forward(c, l.mlp, g.activation, x); },
      [&](Value& x) {
        if (g.sandwich) x = forward(c, l.post_self_attn_norm, x);
      },
      [&](Value& x) {
        if (g.sandwich) x = forward(c, l.post_mlp_norm, x);
      });
}

/// modeling_glm4.py, Glm4Model.forward: embeddings[B, S, hidden] -> normed hidden states.
inline Value forward(Context& c, const GlmDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const GlmConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Glm4vTextLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
