// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/experts.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// The language model of Gemma 4 (transformers 5.17 models/gemma4, Gemma4TextConfig): sliding layers and full ones with
/// heads of their own size; the last layers may take the keys and values of earlier ones.
struct Gemma4TextConfig {
  std::int64_t vocab = 262144;
  std::int64_t hidden = 2304;
  std::int64_t intermediate = 9216;
  std::int64_t layers = 30;
  std::int64_t heads = 8;
  std::int64_t kv_heads = 4;
  std::int64_t head_dim = 256;
  std::int64_t full_kv_heads = 4;    ///< of the full layers
  std::int64_t full_head_dim = 512;  ///< of the full layers
  bool attention_bias = false;
  bool attention_dropout = false;  ///< in training mode
  bool keys_as_values = false;     ///< full layers have no projection of values: keys before their norm take its place
  std::int64_t shared = 0;         ///< layers at the end that have no keys and values of their own
  bool double_wide = false;        ///< their MLPs are twice as wide
  Activation activation = Activation::gelu_tanh;
  std::int64_t window = 512;
  std::vector<bool> sliding;     ///< per layer
  std::int64_t per_layer = 256;  ///< width of what each layer gets of each token beside its input; 0: nothing
  std::int64_t per_layer_vocab = 262144;
  MoeConfig moe{.experts = 0};    ///< beside every layer's MLP; no experts: none
  bool blocks_of_images = false;  ///< in sliding layers the tokens of a picture see each other in both directions

  std::int64_t first_shared() const { return layers - shared; }
  bool slides(std::int64_t layer) const { return sliding[static_cast<std::size_t>(layer)]; }
  bool shares(std::int64_t layer) const { return layer >= first_shared(); }
  /// The last layer of its type that has keys and values, which those that share take.
  bool lends(std::int64_t layer) const {
    if (shares(layer)) return false;
    for (std::int64_t i = layer + 1; i < first_shared(); ++i)
      if (slides(i) == slides(layer)) return false;
    return true;
  }
};

struct Gemma4Attention {
  ScopeId scope = 0;
  Linear q, k, v, out;
  RmsNorm q_norm, k_norm, v_norm;
  std::int64_t head_dim = 0;
  bool slides = false, shares = false, lends = false;
  bool keys_as_values = false;
};

/// In the order of Gemma4TextAttention.__init__.
inline Gemma4Attention make_gemma4_attention(Context& c, const Gemma4TextConfig& g, std::int64_t layer) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "self_attn");
  Gemma4Attention a{.scope = m.scope, .slides = g.slides(layer), .shares = g.shares(layer), .lends = g.lends(layer)};
  a.head_dim = a.slides ? g.head_dim : g.full_head_dim;
  a.keys_as_values = g.keys_as_values && !a.slides;
  const std::int64_t queries = checked_mul(g.heads, a.head_dim);
  const std::int64_t keys = checked_mul(a.slides ? g.kv_heads : g.full_kv_heads, a.head_dim);
  a.q = make_linear(c, "q_proj", g.hidden, queries, g.attention_bias);
  a.q_norm = make_rms_norm(c, "q_norm", a.head_dim, kind);
  if (!a.shares) {
    a.k_norm = make_rms_norm(c, "k_norm", a.head_dim, kind);
    a.v_norm = make_weightless_norm(c, "v_norm");
    a.k = make_linear(c, "k_proj", g.hidden, keys, g.attention_bias);
    if (!a.keys_as_values) a.v = make_linear(c, "v_proj", g.hidden, keys, g.attention_bias);
  }
  a.out = make_linear(c, "o_proj", queries, g.hidden, g.attention_bias);
  return a;
}

/// Keys and values that layers lend to later ones of their type (the models' shared_kv_states), a variable of the
/// model's forward.
struct LentKeys {
  struct Pair {
    Value keys, values;
  };
  Pair full, sliding;
  Pair& of(bool slides) { return slides ? sliding : full; }
};

/// Projected heads[B, S, H, D] as queries and keys are: normed, turned, and heads ahead of tokens.
inline Value turned_heads(Context& c, const RmsNorm& norm, Value heads, const CosSin& positions) {
  using namespace eager;
  heads = forward(c, norm, heads);
  {
    const Value cos = unsqueeze(positions.cos, 2), sin = unsqueeze(positions.sin, 2);
    heads = rotate(heads, cos, sin);
  }
  return transpose(heads, 1, 2);
}

/// modeling_gemma4.py, Gemma4TextAttention.forward.
inline Attended forward(Context& c, const Gemma4TextConfig& g, const Gemma4Attention& a, const Value& x,
                        const Value& mask, const CosSin& positions, CacheLayer& cache, LentKeys& lent) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {batch, tokens, -1, a.head_dim}); };
  const Value q = turned_heads(c, a.q_norm, heads(a.q), positions);
  Value k, v;
  if (a.shares) {
    k = lent.of(a.slides).keys;
    v = lent.of(a.slides).values;
  } else {
    k = heads(a.k);
    v = a.keys_as_values ? k : heads(a.v);
    k = turned_heads(c, a.k_norm, std::move(k), positions);
    v = forward(c, a.v_norm, v);
    v = transpose(v, 1, 2);
    update(c, cache, k, v);
  }
  if (a.lends) lent.of(a.slides) = {k, v};
  Attended r =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  project_out(c, a.out, r);
  return r;
}

}  // namespace vlmest
