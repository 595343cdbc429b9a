// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/attention_args.hpp>
#include <vlmest/nn/linear.hpp>

/// The linear layers around attention, as most of transformers' attention modules have them.
namespace vlmest {

/// Widths, biases and names of the four layers.
struct ProjectionConfig {
  std::int64_t hidden = 0;
  std::int64_t q_width = 0;   ///< heads * head_dim; 0: hidden
  std::int64_t kv_width = 0;  ///< kv_heads * head_dim; 0: hidden
  bool qkv_bias = false;
  bool out_bias = false;
  bool keys_first = false;  ///< declared as k, v, q (CLIP's order), else as q, k, v
  const char* out = "o_proj";
};

/// Of a decoder's config that has these members.
template <class Config>
ProjectionConfig grouped_query(const Config& g, bool qkv_bias, bool out_bias) {
  return {.hidden = g.hidden,
          .q_width = checked_mul(g.heads, g.head_dim),
          .kv_width = checked_mul(g.kv_heads, g.head_dim),
          .qkv_bias = qkv_bias,
          .out_bias = out_bias};
}

struct Projections {
  ScopeId scope = 0;  ///< the attention module's
  Linear q, k, v, out;

  /// The parameter that was declared first.
  TensorId first() const {
    TensorId r = q.weight;
    for (const TensorId w : {k.weight, out.weight})
      if (w != none) r = std::min(r, w);
    return r;
  }
};

/// In the current scope, the attention module's.
inline Projections make_projections(Context& c, const ProjectionConfig& g) {
  Projections p{.scope = c.b.scope()};
  const std::int64_t q_width = g.q_width > 0 ? g.q_width : g.hidden, kv_width = g.kv_width > 0 ? g.kv_width : g.hidden;
  if (!g.keys_first) p.q = make_linear(c, "q_proj", g.hidden, q_width, g.qkv_bias);
  p.k = make_linear(c, "k_proj", g.hidden, kv_width, g.qkv_bias);
  p.v = make_linear(c, "v_proj", g.hidden, kv_width, g.qkv_bias);
  if (g.keys_first) p.q = make_linear(c, "q_proj", g.hidden, q_width, g.qkv_bias);
  p.out = make_linear(c, g.out, q_width, g.hidden, g.out_bias);
  return p;
}

struct Qkv {
  Value q, k, v;
};

/// x[B, S, hidden] through the three layers, one after the other.
inline Qkv project(Context& c, const Projections& p, const Value& x) {
  Qkv y;
  y.q = forward(c, p.q, x);
  y.k = forward(c, p.k, x);
  y.v = forward(c, p.v, x);
  return y;
}

/// [B, S, heads * head_dim] -> [B, heads, S, head_dim], views.
inline Value split_heads(Value x, std::int64_t head_dim) {
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  return eager::transpose(eager::view(std::move(x), {batch, tokens, -1, head_dim}), 1, 2);
}
inline void split_heads(Qkv& y, std::int64_t head_dim) {
  y.q = split_heads(std::move(y.q), head_dim);
  y.k = split_heads(std::move(y.k), head_dim);
  y.v = split_heads(std::move(y.v), head_dim);
}
/// The same where each result's heads are split before the next layer runs, which the backward's order follows.
inline Qkv project_heads(Context& c, const Projections& p, const Value& x, std::int64_t head_dim) {
  Qkv y;
  y.q = split_heads(forward(c, p.q, x), head_dim);
  y.k = split_heads(forward(c, p.k, x), head_dim);
  y.v = split_heads(forward(c, p.v, x), head_dim);
  return y;
}

/// Attention's result [B, S, heads, head_dim] through the output layer; the weights stay with it.
inline void project_out(Context& c, const Linear& out, Attended& a) {
  a.out = eager::reshape(a.out, {a.out.size(0), a.out.size(1), -1});
  a.out = forward(c, out, a.out);
}

}  // namespace vlmest
