// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The language model of Muse Glimmer (transformers models/muse_glimmer, MuseGlimmerTextModel): normed embeddings,
/// norms around both halves of a layer, normed heads of queries and keys without weights, a gate on the output of
/// attention, and layers that slide and turn beside full ones that do not. Defaults: MuseGlimmerTextConfig.
struct MuseGlimmerText {
  std::int64_t vocab = 202048;
  std::int64_t hidden = 6656;
  std::int64_t intermediate = 19968;
  std::int64_t layers = 52;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 128;
  bool attention_bias = false;     ///< of all projections but the gate's
  bool attention_dropout = false;  ///< in training mode, of eager attention's weights
  Activation activation = Activation::silu;
  std::int64_t window = 2048;  ///< sliding_window of the layers named in `sliding`
  std::vector<bool> sliding;   ///< per layer
  std::vector<bool> turns;     ///< per layer: whether positions turn its queries and keys
};

struct MuseGlimmerLayer {
  ScopeId scope = 0;
  Projections attention;
  Linear gate;
  RmsNorm head_norm;  ///< of queries and keys
  GatedMlp mlp;
  RmsNorm input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;
};

struct MuseGlimmerDecoder {
  const MuseGlimmerText* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  RmsNorm embed_norm;
  std::vector<MuseGlimmerLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline std::int64_t vocabulary(const MuseGlimmerText& g) { return g.vocab; }
inline std::int64_t width(const MuseGlimmerText& g) { return g.hidden; }
inline Cache make_cache(const MuseGlimmerText& g) { return empty_cache(g.layers, g.sliding, g.window); }

/// In the order of MuseGlimmerTextDecoderLayer.__init__. Its MuseGlimmerTextCenteredRMSNorm is Gemma's norm, its
/// MuseGlimmerRMSNorm Gemma 4's.
inline MuseGlimmerLayer make_muse_layer(Context& c, const MuseGlimmerText& g, std::int32_t index) {
  constexpr auto centered = RmsNorm::Kind::gemma;
  Module m(c, "layers", index);
  MuseGlimmerLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.attention_bias, g.attention_bias));
    l.gate = make_linear(c, "gate_proj", g.hidden, checked_mul(g.heads, g.head_dim), false);
    l.head_norm = make_weightless_norm(c, "qk_norm");
  }
  l.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, false, g.activation);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden, centered);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden, centered);
  l.pre_feedforward_norm = make_rms_norm(c, "pre_feedforward_layernorm", g.hidden, centered);
  l.post_feedforward_norm = make_rms_norm(c, "post_feedforward_layernorm", g.hidden, centered);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of MuseGlimmerTextModel.__init__.
inline MuseGlimmerDecoder make_decoder(Context& c, const MuseGlimmerText& g) {
  MuseGlimmerDecoder d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  {
    InScope e(c.b, d.embed_tokens.scope);
    d.embed_norm = make_weightless_norm(c, "embed_norm");
  }
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_muse_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden, RmsNorm::Kind::gemma4);
  d.rope = make_rope(c, "rotary_emb", g.head_dim);
  return d;
}

/// MuseGlimmerTextNormedEmbedding.forward.
inline Value embed(Context& c, const MuseGlimmerDecoder& d, const Value& ids) {
  Value rows = forward(c, d.embed_tokens, ids);
  return input_embedding(c, forward(c, d.embed_norm, std::move(rows)));
}

/// modeling_muse_glimmer.py, MuseGlimmerTextAttention.forward; `positions`: none where the layer's queries and keys do
/// not turn.
inline Attended self_attention(Context& c, const MuseGlimmerText& g, const MuseGlimmerLayer& l, const Value& x,
                               const Value& mask, const CosSin* positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  auto [q, k, v] = project_heads(c, l.attention, x, g.head_dim);
  q = mul_scalar(forward(c, l.head_norm, q));
  k = forward(c, l.head_norm, k);
  if (positions != nullptr) apply_rope(c, q, k, *positions);
  update(c, cache, k, v);
  Attended a =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  a.out = reshape(a.out, {a.out.size(0), a.out.size(1), -1});
  a.out = mul(a.out, unary(functions::sigmoid, forward(c, l.gate, x)));
  a.out = forward(c, l.attention.out, a.out);
  return a;
}

/// modeling_muse_glimmer.py, MuseGlimmerTextDecoderLayer.forward.
inline Value forward(Context& c, const MuseGlimmerText& g, const MuseGlimmerLayer& l, Value arg, const Value& mask,
                     const CosSin* positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.pre_feedforward_norm,
      [&](const Value& x) { return forward(c, l.mlp, x); }, [&](Value& x) { x = forward(c, l.post_attention_norm, x); },
      [&](Value& x) { x = forward(c, l.post_feedforward_norm, x); });
}

/// modeling_muse_glimmer.py, MuseGlimmerTextModel.forward: embeddings[B, S, hidden] -> normed hidden states. Both masks
/// are made whatever layers there are.
inline Value forward(Context& c, const MuseGlimmerDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  const MuseGlimmerText& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  const Value position_ids = text_positions(c, tokens);
  const Value full = causal_mask(c, mask_shape(cache, batch, tokens), attention_mask);
  const Value sliding = causal_mask(c, mask_shape(cache, batch, tokens, g.window), attention_mask);
  Value x = embeds;
  const CosSin positions = forward(c, d.rope, position_ids);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const MuseGlimmerLayer& l = d.layers[i];
    const bool slides = g.sliding[i], turns = g.turns[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({(slides ? 1 : 0) + (turns ? 2 : 0), l.scope, l.attention.first()}, x, entry, [&](const Value& h) {
      return forward(c, g, l, h, slides ? sliding : full, turns ? &positions : nullptr, entry);
    });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
