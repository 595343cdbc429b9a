// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/mrope.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// The text model of GLM-4.1V (transformers models/glm4v, Glm4vTextModel), and of GLM-OCR, whose heads need not fill
/// the width and have no biases (models/glm_ocr, GlmOcrTextModel): norms before and after attention and MLP,
/// gate and up in one product, rotation of pairs over a part of each head under positions of three axes. Defaults:
/// Glm4vTextConfig.
struct Glm4vTextConfig {
  std::int64_t vocab = 151552;
  std::int64_t hidden = 4096;
  std::int64_t intermediate = 13696;
  std::int64_t layers = 40;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 128;
  std::int64_t rotary_dim = 128;                   ///< head_dim times partial_rotary_factor
  std::vector<std::int64_t> sections{16, 24, 24};  ///< frequencies that follow time, rows, columns, time, …
  bool qkv_bias = true;
  Activation activation = Activation::silu;
};

struct Glm4vTextMlp {
  ScopeId scope = 0, activation_scope = 0;
  Linear gate_up, down;
};

struct Glm4vTextLayer {
  ScopeId scope = 0;
  Projections attention;
  Glm4vTextMlp mlp;
  RmsNorm input_norm, post_attention_norm, post_self_attn_norm, post_mlp_norm;
};

struct Glm4vText {
  const Glm4vTextConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens;
  std::vector<Glm4vTextLayer> layers;
  RmsNorm norm;
  Rope rope;
};

inline Cache make_cache(const Glm4vTextConfig& g) { return empty_cache(g.layers); }

/// In the order of Glm4vTextMLP.__init__.
inline Glm4vTextMlp make_glm_mlp(Context& c, std::int64_t hidden, std::int64_t intermediate) {
  Module m(c, "mlp");
  Glm4vTextMlp r{.scope = m.scope};
  r.gate_up = make_linear(c, "gate_up_proj", hidden, checked_mul(intermediate, 2), false);
  r.down = make_linear(c, "down_proj", intermediate, hidden, false);
  r.activation_scope = c.b.child("activation_fn");
  return r;
}

/// In the order of Glm4vTextDecoderLayer.__init__.
inline Glm4vTextLayer make_glm4v_text_layer(Context& c, const Glm4vTextConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  Glm4vTextLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, grouped_query(g, g.qkv_bias, false));
  }
  l.mlp = make_glm_mlp(c, g.hidden, g.intermediate);
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  l.post_self_attn_norm = make_rms_norm(c, "post_self_attn_layernorm", g.hidden);
  l.post_mlp_norm = make_rms_norm(c, "post_mlp_layernorm", g.hidden);
  return l;
}

/// In the order of Glm4vTextModel.__init__.
inline Glm4vText make_decoder(Context& c, const Glm4vTextConfig& g) {
  Glm4vText d{.config = &g, .scope = c.b.scope()};
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, g.hidden);
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_glm4v_text_layer(c, g, i); });
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_rope(c, "rotary_emb", g.rotary_dim);
  return d;
}

/// modeling_glm4v.py, Glm4vTextRotaryEmbedding.recomposition_frequencies: section i comes from axis i mod 3; each entry
/// twice. freq[3, B, S, n] -> [B, S, 2 n].
inline Value pair_sections(Value freq, const std::vector<std::int64_t>& sections) {
  freq = interleave_axes(std::move(freq), sections);
  return repeat_each(freq);
}

/// modeling_glm4v.py, apply_rotary_pos_emb: the first rotary channels of q and k [B, H, S, D] are rotated as pairs of
/// neighbours, the others pass. cos, sin[B, 1, S, rotary].
inline void turn_pairs_of(Value& q, Value& k, const Value& cos, const Value& sin) {
  using namespace eager;
  const std::int64_t dim = cos.size(-1);
  const auto first = [&](const Value& x) { return slice(x, -1, 0, dim); };
  const auto rest = [&](const Value& x) { return slice(x, -1, dim, x.size(-1)); };
  const auto rotated_pairs = [](const Value& x) {
    Value x1 = slice(x, -1, 0, x.size(-1), 2), x2 = slice(x, -1, 1, x.size(-1), 2);
    std::array<Value, 2> pair{neg(x2), x1};
    return flatten(stack(pair, -1), -2, -1);
  };
  const auto rotate = [&](const Value& x) {
    Value a = mul(x, cos);
    Value turned = rotated_pairs(x);
    Value b = mul(std::move(turned), sin);
    return add(std::move(a), std::move(b));
  };
  Value q_rotated = first(q), q_rest = rest(q);
  Value k_rotated = first(k), k_rest = rest(k);
  Value q_embed = rotate(q_rotated);
  Value k_embed = rotate(k_rotated);
  q_embed = cat(q_embed, q_rest, -1);
  k_embed = cat(k_embed, k_rest, -1);
  q = std::move(q_embed);
  k = std::move(k_embed);
}
inline void apply_pair_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  stacks::rotate(c, q, k, e.cos, e.sin,
                 [&] { turn_pairs_of(q, k, eager::unsqueeze(e.cos, 1), eager::unsqueeze(e.sin, 1)); });
}

/// modeling_glm4v.py, Glm4vTextAttention.forward.
inline Attended self_attention(Context& c, const Glm4vTextConfig& g, const Glm4vTextLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Qkv y = project(c, l.attention, x);
  split_heads(y, g.head_dim);
  apply_pair_rope(c, y.q, y.k, positions);
  update(c, cache, y.k, y.v);
  Attended a = stacks::attend(c, {y.q, y.k, y.v, mask, true});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_glm4v.py, Glm4vTextMLP.forward: gate and up are halves of one result, up is rebound to the product.
inline Value forward(Context& c, const Glm4vTextMlp& m, Activation activation, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  Value up = forward(c, m.gate_up, x);
  if (c.stack().fuses_gate) {
    up = fused_gate(std::move(up));
    return forward(c, m.down, up);
  }
  const std::int64_t n = up.size(-1);
  Value gate;
  {
    std::vector<Value> halves = split(up, std::array{n / 2, n / 2}, -1);
    gate = std::move(halves[0]);
    up = std::move(halves[1]);
  }
  Value opened;
  {
    InScope a(c.b, m.activation_scope);
    opened = activate(c, activation, gate);
  }
  up = mul(up, std::move(opened));
  opened.reset();
  return forward(c, m.down, up);
}

/// modeling_glm4v.py, Glm4vTextDecoderLayer.forward.
inline Value forward(Context& c, const Glm4vTextConfig& g, const Glm4vTextLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.input_norm,
      [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.post_attention_norm,
      [&](const Value& x) { return forward(c, l.mlp, g.activation, x); },
      [&](Value& x) { x = forward(c, l.post_self_attn_norm, x); },
      [&](Value& x) { x = forward(c, l.post_mlp_norm, x); });
}

/// modeling_glm4v.py, Glm4vTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on from
/// the cache) -> normed hidden states.
inline Value forward(Context& c, const Glm4vText& d, Value embeds, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  using namespace eager;
  const Glm4vTextConfig& g = *d.config;
  LanguageInputs own = own_part(c, d.scope, std::move(embeds), std::move(position_ids), attention_mask);
  InScope in(c.b, d.scope);
  const std::int64_t batch = own.embeds.size(0), tokens = own.embeds.size(1);
  if (!own.positions) own.positions = text_positions_3d(c, batch, tokens);
  const Value mask = causal_mask(c, mask_shape(cache, batch, tokens), own.mask);
  Value x = own.embeds;
  const auto deal = [&](Value f) { return pair_sections(std::move(f), g.sections); };
  const CosSin positions = mrope(c, d.rope, own.positions, deal);
  DecoderStack stack(c, {});
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Glm4vTextLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
