// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/multihead_attention.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Aria's projector (transformers 5.17 models/aria, AriaProjector): learned queries attend to a picture's patches, as
/// many as projector_patch_to_query_dict has for their number.
struct AriaProjectorConfig {
  std::int64_t in = 1152;                                                  ///< the tower's width
  std::int64_t heads = 16;                                                 ///< and its heads
  std::int64_t out = 4096;                                                 ///< the language model's width
  std::map<std::int64_t, std::int64_t> queries{{1225, 128}, {4900, 256}};  ///< by patches

  std::int64_t most() const {
    std::int64_t n = 0;
    for (const auto& [patches, of] : queries) n = std::max(n, of);
    return n;
  }
};

struct AriaProjector {
  const AriaProjectorConfig* config = nullptr;
  ScopeId scope = 0, cross_scope = 0, feed_forward_scope = 0, activation_scope = 0;
  TensorId query = none;  ///< [most queries, in]
  Linear q, k, v, out;
  MultiheadAttention attention;
  LayerNorm query_norm, key_norm, norm;
  Linear linear_in, linear_out;
};

/// In the order of AriaProjector.__init__, AriaCrossAttention.__init__ and AriaProjectorMLP.__init__.
inline AriaProjector make_projector(Context& c, const AriaProjectorConfig& g) {
  AriaProjector p{.config = &g, .scope = c.b.scope()};
  p.query = parameter(c, "query", {g.most(), g.in});
  {
    Module a(c, "cross_attn");
    p.cross_scope = a.scope;
    p.q = make_linear(c, "q_proj", g.in, g.in, false);
    p.k = make_linear(c, "k_proj", g.in, g.in, false);
    p.v = make_linear(c, "v_proj", g.in, g.in, false);
    p.attention = make_multihead_attention(c, "multihead_attn", g.in);
    p.out = make_linear(c, "linear", g.in, g.in, true);
    p.query_norm = make_layer_norm(c, "layer_norm", g.in);
    p.key_norm = make_layer_norm(c, "layer_norm_kv", g.in);
  }
  p.norm = make_layer_norm(c, "layer_norm", g.in);
  {
    Module f(c, "feed_forward");
    p.feed_forward_scope = f.scope;
    p.linear_in = make_linear(c, "linear_in", g.in, g.out, false);
    p.linear_out = make_linear(c, "linear_out", g.out, g.out, false);
    p.activation_scope = c.b.child("act");
  }
  return p;
}

/// torch.nn.MultiheadAttention takes a mask of booleans, true where nothing is seen, as an additive one
/// (torch/nn/functional.py, _canonical_mask).
inline Value canonical_mask(const Value& hidden, DType t) {
  return eager::masked_fill_(eager::fill(hidden.builder(), "zeros_like", hidden.shape(), t), hidden);
}

/// AriaCrossAttention.forward: queries[N, Q, in] over states[N, patches, in]; its mask[N heads, Q, patches] is empty
/// where the stack makes none.
inline Value cross_attention(Context& c, const AriaProjector& p, const Value& given, const Value& queries,
                             const Value& hidden) {
  InScope in(c.b, p.cross_scope);
  const Value query = forward(c, p.q, forward(c, p.query_norm, queries));
  const Value states = forward(c, p.key_norm, given);
  const Value key = forward(c, p.k, states);
  const Value value = forward(c, p.v, states);
  Value out;
  Attended attended;
  {
    InScope module(c.b, p.attention.scope);
    const Value mask = hidden ? canonical_mask(hidden, query.dtype()) : Value();
    attended = multihead_attention(c, p.attention, p.config->heads, query, key, value, mask);
  }
  attended.out = forward(c, p.out, attended.out);
  return attended.out;
}

/// AriaProjector.forward: states[N, patches, in], padding bool[N, patches] with true where no pixels are, or empty ->
/// [N, queries, out].
inline Value forward(Context& c, const AriaProjector& p, const Value& states, const Value& padding) {
  using namespace eager;
  const AriaProjectorConfig& g = *p.config;
  InScope in(c.b, p.scope);
  const std::int64_t n = states.size(0), patches = states.size(1), count = g.queries.at(patches);
  const Value queries = repeat(unsqueeze(slice(Value(c.b, p.query), 0, 0, count), 0), {n, 1, 1});
  Value mask;
  if (padding) {
    mask = clone_contiguous(expand(unsqueeze(padding, 1), {n, g.heads, patches}));  // repeat_interleave
    mask = view(std::move(mask), {checked_mul(n, g.heads), patches});
    mask = expand(unsqueeze(std::move(mask), 1), {-1, count, -1});
  }
  const Value attended = cross_attention(c, p, states, queries, mask);
  const Value normed = forward(c, p.norm, attended);
  InScope feed_forward(c.b, p.feed_forward_scope);
  Value x = forward(c, p.linear_in, normed);
  {
    InScope a(c.b, p.activation_scope);
    x = activate(c, Activation::gelu_new, x);
  }
  return forward(c, p.linear_out, x);
}

}  // namespace vlmest
