// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/decoder/qwen_vl_text.hpp>
#include <vlmest/nn/mrope.hpp>

namespace vlmest {

/// The text model of GLM-4.1V (transformers models/glm4v, Glm4vTextModel): norms before and after attention and MLP,
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
  Activation activation = Activation::silu;
};

struct Glm4vTextMlp {
  ScopeId scope = 0, activation_scope = 0;
  Linear gate_up, down;
};

struct Glm4vTextLayer {
  ScopeId scope = 0, attention_scope = 0;
  Linear q, k, v, o;
  Glm4vTextMlp mlp;
  RmsNorm input_norm, post_attention_norm, post_self_attn_norm, post_mlp_norm;
};

struct Glm4vText {
  const Glm4vTextConfig* config = nullptr;
  ScopeId scope = 0, embed_scope = 0;
  TensorId embed_tokens = none;
  std::vector<Glm4vTextLayer> layers;
  RmsNorm norm;
  Mrope rope;
};

inline std::int64_t vocabulary(const Glm4vTextConfig& g) { return g.vocab; }
inline std::int64_t width(const Glm4vTextConfig& g) { return g.hidden; }
inline Cache make_cache(const Glm4vTextConfig& g) {
  Cache r;
  r.layers.resize(static_cast<std::size_t>(g.layers));
  return r;
}

/// In the order of Glm4vTextDecoderLayer.__init__.
inline Glm4vTextLayer make_glm4v_text_layer(Context& c, const Glm4vTextConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  Glm4vTextLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.q = make_linear(c, "q_proj", g.hidden, checked_mul(g.heads, g.head_dim), true);
    l.k = make_linear(c, "k_proj", g.hidden, checked_mul(g.kv_heads, g.head_dim), true);
    l.v = make_linear(c, "v_proj", g.hidden, checked_mul(g.kv_heads, g.head_dim), true);
    l.o = make_linear(c, "o_proj", checked_mul(g.heads, g.head_dim), g.hidden, false);
  }
  {
    Module p(c, "mlp");
    l.mlp.scope = p.scope;
    l.mlp.gate_up = make_linear(c, "gate_up_proj", g.hidden, checked_mul(g.intermediate, 2), false);
    l.mlp.down = make_linear(c, "down_proj", g.intermediate, g.hidden, false);
    l.mlp.activation_scope = c.b.child("activation_fn");
  }
  l.input_norm = make_rms_norm(c, "input_layernorm", g.hidden);
  l.post_attention_norm = make_rms_norm(c, "post_attention_layernorm", g.hidden);
  l.post_self_attn_norm = make_rms_norm(c, "post_self_attn_layernorm", g.hidden);
  l.post_mlp_norm = make_rms_norm(c, "post_mlp_layernorm", g.hidden);
  return l;
}

/// In the order of Glm4vTextModel.__init__.
inline Glm4vText make_decoder(Context& c, const Glm4vTextConfig& g) {
  Glm4vText d{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "embed_tokens");
    d.embed_scope = e.scope;
    d.embed_tokens = parameter(c, "weight", {g.vocab, g.hidden});
  }
  d.layers.reserve(static_cast<std::size_t>(g.layers));
  for (std::int64_t i = 0; i < g.layers; ++i)
    d.layers.push_back(make_glm4v_text_layer(c, g, static_cast<std::int32_t>(i)));
  d.norm = make_rms_norm(c, "norm", g.hidden);
  d.rope = make_mrope(c, "rotary_emb", g.rotary_dim);
  return d;
}

inline Value embed(Context& c, const Glm4vText& d, const Value& input_ids) {
  InScope in(c.b, d.embed_scope);
  return eager::embedding(Value(c.b, d.embed_tokens), input_ids);
}

/// modeling_glm4v.py, Glm4vTextRotaryEmbedding.recomposition_frequencies: section i comes from axis i mod 3; each entry
/// twice. freq[3, B, S, n] -> [B, S, 2 n].
inline Value pair_sections(Value freq, const std::vector<std::int64_t>& sections) {
  using namespace eager;
  freq = interleave_axes(std::move(freq), sections);
  const std::int64_t b = freq.size(0), s = freq.size(1), n = freq.size(2);
  return view(clone_contiguous(expand(unsqueeze(freq, -1), {b, s, n, 2})), {b, s, 2 * n});
}

/// modeling_glm4v.py, apply_rotary_pos_emb: the first rotary channels of q and k [B, H, S, D] are rotated as pairs of
/// neighbours, the others pass.
inline void apply_pair_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  if (c.fused()) return fused_rotate(c, q, k, e);
  Value cos = unsqueeze(e.cos, 1), sin = unsqueeze(e.sin, 1);
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
  Value q_embed = rotate(first(q));
  Value k_embed = rotate(first(k));
  q_embed = cat(q_embed, rest(q), -1);
  k_embed = cat(k_embed, rest(k), -1);
  q = std::move(q_embed);
  k = std::move(k_embed);
}

/// modeling_glm4v.py, Glm4vTextAttention.forward.
inline Attended self_attention(Context& c, const Glm4vTextConfig& g, const Glm4vTextLayer& l, const Value& x,
                               const Value& mask, const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  Value q = forward(c, l.q, x);
  Value k = forward(c, l.k, x);
  Value v = forward(c, l.v, x);
  const auto heads = [&](Value& y) { y = transpose(view(y, {batch, tokens, -1, g.head_dim}), 1, 2); };
  heads(q);
  heads(k);
  heads(v);
  apply_pair_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a = attend(c, {q, k, v, mask, true});
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = forward(c, l.o, a.out);
  return a;
}

/// modeling_glm4v.py, Glm4vTextMLP.forward: gate and up are halves of one result, up is rebound to the product.
inline Value forward(Context& c, const Glm4vTextMlp& m, Activation activation, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  Value up = forward(c, m.gate_up, x);
  const std::int64_t n = up.size(-1);
  Value gate = slice(up, -1, 0, n / 2);
  up = slice(up, -1, n / 2, n);
  if (c.fused()) {
    up = fused_gate(c, gate, up);
  } else {
    Value opened;
    {
      InScope a(c.b, m.activation_scope);
      opened = activate(c, activation, gate);
    }
    up = mul(up, std::move(opened));
  }
  return forward(c, m.down, up);
}

/// modeling_glm4v.py, Glm4vTextDecoderLayer.forward.
inline Value forward(Context& c, const Glm4vTextConfig& g, const Glm4vTextLayer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.input_norm, x);
  Attended attended = self_attention(c, g, l, x, mask, positions, cache);  // the weights stay to the end
  x = std::move(attended.out);
  x = forward(c, l.post_self_attn_norm, x);
  x = add(residual, x);
  residual = x;
  x = forward(c, l.post_attention_norm, x);
  x = forward(c, l.mlp, g.activation, x);
  x = forward(c, l.post_mlp_norm, x);
  x = add(residual, x);
  return x;
}

/// modeling_glm4v.py, Glm4vTextModel.forward: embeddings[B, S, hidden] and positions[3, B, S] (none: counted on from
/// the cache) -> normed hidden states.
inline Value forward(Context& c, const Glm4vText& d, Value arg, Value position_ids, const Value& attention_mask,
                     Cache& cache) {
  using namespace eager;
  const Glm4vTextConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t batch = embeds.size(0), tokens = embeds.size(1);
  if (!position_ids) {
    position_ids = arange(c.b, tokens);
    position_ids = expand(view(add_scalar(std::move(position_ids)), {1, 1, tokens}), {3, batch, tokens});
  }
  const MaskShape shape{.batch = batch, .q_len = tokens, .kv_len = tokens + cache.layers.front().seen};
  Value mask = causal_mask(c, shape, attention_mask);
  Value x = embeds;
  const auto deal = [&](Value f) { return pair_sections(std::move(f), g.sections); };
  CosSin positions = forward(c, d.rope, position_ids, deal);
  DecoderStack stack(c);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Glm4vTextLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.q.weight}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, positions, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
