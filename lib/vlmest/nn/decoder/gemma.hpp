// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask_blocks.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The decoders of Gemma, Gemma 2 (norms before and after each half of a layer, layers that slide, capped scores) and
/// Gemma 3 (norms of each head of q and k, rotary embeddings of their own for each type of layer). transformers
/// models/gemma, gemma2, gemma3.
struct GemmaConfig {
  std::int64_t vocab = 256000;
  std::int64_t hidden = 3072;
  std::int64_t intermediate = 24576;
  std::int64_t layers = 28;
  std::int64_t heads = 16;
  std::int64_t kv_heads = 16;
  std::int64_t head_dim = 256;
  bool attention_bias = false;
  bool sandwich = false;  ///< norms also after the attention and after the MLP
  bool qk_norm = false;
  bool softcap = false;       ///< attention scores pass through tanh
  bool rope_by_type = false;  ///< sliding and full layers have frequencies of their own
  bool causal = true;         ///< the attention modules' own flag, where no mask is given
  Activation activation = Activation::gelu_tanh;
  std::optional<std::int64_t> window;  ///< sliding window of the layers named in `sliding`
  std::vector<bool> sliding;           ///< per layer; empty: none

  bool slides(std::size_t layer) const { return layer < sliding.size() && sliding[layer]; }
};

struct GemmaLayer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;
};

struct GemmaDecoder {
  const GemmaConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  TensorId embed_scale = none;
  std::vector<GemmaLayer> layers;
  RmsNorm norm;
  Rope full_rope, sliding_rope;  ///< one and the same unless rope_by_type
};

inline GemmaLayer make_gemma_layer(Context& c, const GemmaConfig& g, std::int32_t index) {
  constexpr auto gemma = RmsNorm::Kind::gemma;
  Module m(c, "layers", index);
  GemmaLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.attention_bias, g.attention_bias));
    if (g.qk_norm) {
      l.q_norm = make_rms_norm(c, "q_norm", g.head_dim, gemma);
      l.k_norm = make_rms_norm(c, "k_norm", g.head_dim, gemma);
    }
  }
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, gemma);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, gemma);
  if (g.sandwich) {
    l.pre_feedforward_norm = make_rms_norm(c, "pre_feedforward_layernorm", g.hidden, gemma);
    l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden, gemma);
  }
  return l;
}

/// modeling_gemma3.py, Gemma3RotaryEmbedding.__init__: a pair of buffers for each type of layer, in alphabetical order.
inline void make_ropes(Context& c, GemmaDecoder& d) {
  const GemmaConfig& g = *d.config;
  if (!g.rope_by_type) {
    d.full_rope = d.sliding_rope = make_rope(c, "rotary_emb", g.head_dim);
    return;
  }
  Module m(c, "rotary_emb");
  d.full_rope = d.sliding_rope = {.scope = m.scope, .dim = g.head_dim};
  const std::int64_t slides = std::count(g.sliding.begin(), g.sliding.end(), true);
  const Shape half{g.head_dim / 2};
  if (slides < g.layers) {
    d.full_rope.inv_freq = buffer(c, "full_attention_inv_freq", half, DType::fp32);
    buffer(c, "full_attention_original_inv_freq", half, DType::fp32);
  }
  if (slides > 0) {
    d.sliding_rope.inv_freq = buffer(c, "sliding_attention_inv_freq", half, DType::fp32);
    buffer(c, "sliding_attention_original_inv_freq", half, DType::fp32);
  }
}

/// Declares the decoder's parameters under the current scope, in the order of the models' __init__.
inline GemmaDecoder make_decoder(Context& c, const GemmaConfig& g) {
  GemmaDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  {
    InScope e(c.b, d.embed_tokens.scope);
    d.embed_scale = buffer(c, "embed_scale", Shape{}, c.dtype());
  }
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_gemma_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gemma);
  make_ropes(c, d);
  return d;
}

inline Cache make_cache(const GemmaConfig& g) { return empty_cache(g.layers, g.sliding, g.window); }

/// Gemma3TextScaledWordEmbedding.forward, and those of Gemma and Gemma 2.
inline Value embed(Context& c, const GemmaDecoder& d, const Value& input_ids) {
  Value rows = forward(c, d.embed_tokens, input_ids);
  InScope in(c.b, d.embed_tokens.scope);
  return input_embedding(c, eager::mul(std::move(rows), Value(c.b, d.embed_scale)));
}

/// modeling_gemma3.py, Gemma3Attention.forward (and GemmaAttention, Gemma2Attention without the norms).
inline Attended self_attention(Context& c, const GemmaConfig& g, const GemmaLayer& l, const Value& x, const Value& mask,
                               const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  auto heads = [&](const Linear& p) { return split_heads(forward(c, p, x), g.head_dim); };
  Value q = heads(l.attention.q);
  Value k = heads(l.attention.k);
  Value v = heads(l.attention.v);
  if (g.qk_norm) {
    q = forward(c, l.q_norm, q);
    k = forward(c, l.k_norm, k);
  }
  apply_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = g.causal, .softcap = g.softcap});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_gemma.py, GemmaDecoderLayer.forward; modeling_gemma2.py and modeling_gemma3.py with the norms around both
/// halves.
inline Value forward(Context& c, const GemmaConfig& g, const GemmaLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); },
      g.sandwich ? l.pre_feedforward_norm : l.post_attention_norm, [&](const Value& x) { return forward(c, l.mlp, x); },
      [&](Value& x) {
        if (g.sandwich) x = forward(c, l.post_attention_norm, x);
      },
      [&](Value& x) {
        if (g.sandwich) x = forward(c, l.post_feedforward_norm, x);
      });
}

/// Gemma3TextModel.forward from the masks on: embeddings[B, S, hidden], positions[1, S] -> normed hidden states. Which
/// type of layer gets its rotary embedding first is the order of a Python set, thus open; both cost the same.
inline Value forward(Context& c, const GemmaDecoder& d, Value arg, const Value& position_ids, const LayerMasks& masks,
                     Cache& cache) {
  using namespace eager;
  const GemmaConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  Value x = embeds;
  CosSin full, sliding;
  if (d.full_rope.inv_freq != none) full = forward(c, d.full_rope, position_ids);
  if (g.rope_by_type && d.sliding_rope.inv_freq != none) sliding = forward(c, d.sliding_rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const GemmaLayer& l = d.layers[i];
    const bool slides = g.slides(i);
    CacheLayer& entry = cache.layers[i];
    x = stack({slides ? 1 : 0, l.scope, l.attention.first()}, x, entry, [&](const Value& h) {
      return forward(c, g, l, h, masks.of(slides), g.rope_by_type && slides ? sliding : full, entry);
    });
  }
  return forward(c, d.norm, x);
}

/// position_ids as the text models make them where the caller gives none: [1, S].
inline Value text_positions(Context& c, const GemmaDecoder& d, std::int64_t tokens) {
  InScope in(c.b, d.scope);
  return text_positions(c, tokens);
}

/// The masks of a text without blocks: create_causal_mask, and create_sliding_window_causal_mask where the model has a
/// window.
inline LayerMasks causal_masks(Context& c, const GemmaConfig& g, const Value& attention_mask, std::int64_t batch,
                               std::int64_t tokens, const Cache& cache) {
  LayerMasks r;
  r.full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  if (g.window) r.sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  return r;
}

/// The decoder called with embeddings, a mask and a cache alone.
inline Value forward(Context& c, const GemmaDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  Value embeds = std::move(arg);
  Value position_ids = text_positions(c, d, embeds.size(1));
  LayerMasks masks;
  {
    InScope in(c.b, d.scope);
    masks = causal_masks(c, *d.config, attention_mask, embeds.size(0), embeds.size(1), cache);
  }
  return forward(c, d, embeds, position_ids, masks, cache);
}

}  // namespace vlmest
