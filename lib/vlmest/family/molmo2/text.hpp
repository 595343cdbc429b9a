// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The language model of Molmo 2 (allenai/molmo2 olmo/hf_model/modeling_molmo2.py, Molmo2TextModel): queries, keys and
/// values of one linear, gate and up of another, norms ahead of a layer's halves or behind them, embeddings in two
/// parameters that are joined in every call. Defaults: Molmo2TextConfig.
struct Molmo2Text {
  /// What is normed of queries and keys: nothing, each head, or all of them together.
  enum class QkNorm : std::uint8_t { off, heads, whole };
  std::int64_t vocab = 152064;
  std::int64_t extra_vocab = 128;  ///< additional_vocab_size, which the output head has no rows for
  std::int64_t hidden = 3584;
  std::int64_t intermediate = 18944;
  std::int64_t layers = 48;
  std::int64_t heads = 28;
  std::int64_t kv_heads = 4;
  std::int64_t head_dim = 128;
  bool qkv_bias = true;
  QkNorm qk_norm = QkNorm::off;
  bool norm_after = false;
  Activation activation = Activation::silu;
  bool two_ropes = false;    ///< rope_scaling_layers is a list: angles with the scaling and without
  std::vector<bool> scaled;  ///< of those, per layer: whether it takes the scaled ones

  std::int64_t queries() const { return checked_mul(heads, head_dim); }
  std::int64_t keys() const { return checked_mul(kv_heads, head_dim); }
};

struct Molmo2Layer {
  ScopeId scope = 0, attention_scope = 0;
  Linear qkv, out;
  RmsNorm q_norm, k_norm;
  GatedMlp mlp;
  RmsNorm attn_norm, ff_norm;
};

/// Molmo2Embedding.
struct Molmo2Embedding {
  ScopeId scope = 0;
  TensorId weight = none, extra = none;
};

struct Molmo2Decoder {
  const Molmo2Text* config = nullptr;
  ScopeId scope = 0;
  Molmo2Embedding embed_tokens;
  std::vector<Molmo2Layer> layers;
  RmsNorm norm;
  Rope rope, scaled_rope;
};

inline std::int64_t vocabulary(const Molmo2Text& g) { return g.vocab; }
inline std::int64_t width(const Molmo2Text& g) { return g.hidden; }
inline Cache make_cache(const Molmo2Text& g) { return empty_cache(g.layers); }

inline RmsNorm make_molmo_norm(Context& c, const char* name, std::int64_t width) {
  return make_rms_norm(c, name, width, RmsNorm::Kind::molmo2);
}
/// Molmo2RotaryEmbedding.__init__, which keeps one buffer under two names.
inline Rope make_molmo_rope(Context& c, const char* name, std::int64_t dim) {
  Module m(c, name);
  return {.scope = m.scope, .inv_freq = buffer(c, "inv_freq", {dim / 2}, DType::fp32), .dim = dim};
}

/// In the order of Molmo2DecoderLayer.__init__.
inline Molmo2Layer make_molmo_layer(Context& c, const Molmo2Text& g, std::int32_t index) {
  Module m(c, "blocks", index);
  Molmo2Layer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.qkv = make_linear(c, "att_proj", g.hidden, checked_add(g.queries(), checked_mul(g.keys(), 2)), g.qkv_bias);
    if (g.qk_norm != Molmo2Text::QkNorm::off) {
      const bool whole = g.qk_norm == Molmo2Text::QkNorm::whole;
      l.k_norm = make_molmo_norm(c, "k_norm", whole ? g.keys() : g.head_dim);
      l.q_norm = make_molmo_norm(c, "q_norm", whole ? g.queries() : g.head_dim);
    }
    l.out = make_linear(c, "attn_out", g.queries(), g.hidden, false);
  }
  l.attn_norm = make_molmo_norm(c, "attn_norm", g.hidden);
  {
    Module f(c, "mlp");
    l.mlp = {.scope = f.scope, .activation = g.activation};
    l.mlp.gate = make_linear(c, "ff_proj", g.hidden, checked_mul(g.intermediate, 2), false);
    l.mlp.down = make_linear(c, "ff_out", g.intermediate, g.hidden, false);
    l.mlp.activation_scope = c.b.child("act");
  }
  l.ff_norm = make_molmo_norm(c, "ff_norm", g.hidden);
  return l;
}

/// Declares the decoder's parameters under the current scope, in the order of Molmo2TextModel.__init__.
inline Molmo2Decoder make_decoder(Context& c, const Molmo2Text& g) {
  Molmo2Decoder d{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "wte");
    d.embed_tokens.scope = e.scope;
    d.embed_tokens.weight = parameter(c, "embedding", {g.vocab, g.hidden});
    d.embed_tokens.extra = parameter(c, "new_embedding", {g.extra_vocab, g.hidden});
    c.b.graph.embeddings.push_back(d.embed_tokens.weight);
  }
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_molmo_layer(c, g, i); });
  d.norm = make_molmo_norm(c, "ln_f", g.hidden);
  if (!g.two_ropes) {
    d.rope = make_molmo_rope(c, "rotary_emb", g.head_dim);
    return d;
  }
  Module r(c, "rotary_embs");
  d.rope = make_molmo_rope(c, "default", g.head_dim);
  d.scaled_rope = make_molmo_rope(c, "scaling", g.head_dim);
  return d;
}

/// Molmo2Embedding.forward: both parts joined, then looked up.
inline Value embed(Context& c, const Molmo2Decoder& d, const Value& ids) {
  using namespace eager;
  Value rows;
  {
    InScope in(c.b, d.embed_tokens.scope);
    Value table = cat(Value(c.b, d.embed_tokens.weight), Value(c.b, d.embed_tokens.extra), 0);
    rows = embedding(std::move(table), ids);
  }
  return input_embedding(c, std::move(rows));
}

/// Molmo2Attention.forward: the one linear's result is a variable to the end, of which values stay a view where no
/// cache takes them.
inline Attended self_attention(Context& c, const Molmo2Text& g, const Molmo2Layer& l, const Value& x, const Value& mask,
                               const CosSin& positions, CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const Value qkv = forward(c, l.qkv, x);
  std::vector<Value> parts = split(qkv, std::array{g.queries(), g.keys(), g.keys()}, -1);
  Value q = std::move(parts[0]), k = std::move(parts[1]), v = std::move(parts[2]);
  const Shape heads{x.size(0), x.size(1), -1, g.head_dim};
  v = view(std::move(v), heads);
  const auto norm = [&] {
    q = forward(c, l.q_norm, q);
    k = forward(c, l.k_norm, k);
  };
  if (g.qk_norm == Molmo2Text::QkNorm::whole) norm();
  q = view(std::move(q), heads);
  k = view(std::move(k), heads);
  if (g.qk_norm == Molmo2Text::QkNorm::heads) norm();
  for (Value* y : {&q, &k, &v}) *y = transpose(std::move(*y), 1, 2);
  apply_rope(c, q, k, positions);
  update(c, cache, k, v);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true});
  project_out(c, l.out, a);
  return a;
}

/// Molmo2DecoderLayer.forward, and with norms behind the halves Molmo2PostNormDecoderLayer.forward.
inline Value forward(Context& c, const Molmo2Text& g, const Molmo2Layer& l, Value arg, const Value& mask,
                     const CosSin& positions, CacheLayer& cache) {
  if (!g.norm_after)
    return pre_norm_layer(
        c, l.scope, std::move(arg), l.attn_norm,
        [&](const Value& x) { return self_attention(c, g, l, x, mask, positions, cache); }, l.ff_norm,
        [&](const Value& x) { return forward(c, l.mlp, x); });
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  Attended attended = self_attention(c, g, l, x, mask, positions, cache);
  x = std::move(attended.out);
  x = forward(c, l.attn_norm, x);
  x = eager::add(residual, x);
  residual = x;
  x = forward(c, l.mlp, x);
  x = forward(c, l.ff_norm, x);
  x = eager::add(residual, x);
  return x;
}

/// Molmo2TextModel.forward of what its caller prepared: embeddings[B, S, hidden], a mask and positions[1, S] -> normed
/// hidden states.
inline Value forward(Context& c, const Molmo2Decoder& d, const Value& embeds, const Value& mask,
                     const Value& position_ids, Cache& cache) {
  const Molmo2Text& g = *d.config;
  InScope in(c.b, d.scope);
  const CosSin plain = forward(c, d.rope, position_ids);
  const CosSin scaled = g.two_ropes ? forward(c, d.scaled_rope, position_ids) : CosSin{};
  Value x = embeds;
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const Molmo2Layer& l = d.layers[i];
    const bool takes_scaled = g.two_ropes && g.scaled[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({takes_scaled ? 1 : 0, l.scope, l.qkv.weight}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, takes_scaled ? scaled : plain, entry); });
  }
  return forward(c, d.norm, x);
}

}  // namespace vlmest
