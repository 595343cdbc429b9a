// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/gemma3n/text_config.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/gemma4_attention.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma3n.py, Gemma3nTextAttention.
struct Gemma3nAttention {
  ScopeId scope = 0;
  Linear q, k, v, out;
  RmsNorm q_norm, k_norm, v_norm;
  bool slides = false, shares = false, lends = false;
};

/// In the order of Gemma3nTextAttention.__init__.
inline Gemma3nAttention make_gemma3n_attention(Context& c, const Gemma3nTextConfig& g, std::int64_t layer) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Module m(c, "self_attn");
  Gemma3nAttention a{.scope = m.scope, .slides = g.slides(layer), .shares = g.shares(layer), .lends = g.lends(layer)};
  const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
  a.q = make_linear(c, "q_proj", g.hidden, queries, g.attention_bias);
  a.q_norm = make_rms_norm(c, "q_norm", g.head_dim, kind);
  if (!a.shares) {
    a.k = make_linear(c, "k_proj", g.hidden, keys, g.attention_bias);
    a.v = make_linear(c, "v_proj", g.hidden, keys, g.attention_bias);
    a.k_norm = make_rms_norm(c, "k_norm", g.head_dim, kind);
    a.v_norm = make_weightless_norm(c, "v_norm");
  }
  a.out = make_linear(c, "o_proj", queries, g.hidden, g.attention_bias);
  return a;
}

/// Gemma3nTextAttention.forward.
inline Attended forward(Context& c, const Gemma3nTextConfig& g, const Gemma3nAttention& a, const Value& x,
                        const Value& mask, const CosSin& positions, CacheLayer& cache, LentKeys& lent) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const auto heads = [&](const Linear& p) { return view(forward(c, p, x), {x.size(0), x.size(1), -1, g.head_dim}); };
  const Value q = turned_heads(c, a.q_norm, heads(a.q), positions);
  Value k, v;
  if (a.shares) {
    k = lent.of(a.slides).keys;
    v = lent.of(a.slides).values;
  } else {
    k = turned_heads(c, a.k_norm, heads(a.k), positions);
    v = heads(a.v);
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
