// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// OPT (transformers models/opt, OPTDecoder): learned positions, biases, ReLU. Defaults: OPTConfig.
struct OptConfig {
  std::int64_t vocab = 50272;
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;  ///< ffn_dim
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t positions = 2048;  ///< max_position_embeddings
  bool norm_before = true;        ///< do_layer_norm_before
  bool final_norm = true;         ///< a norm behind the last layer, where norms stand before
  bool bias = true;               ///< enable_bias
  bool affine = true;             ///< layer_norm_elementwise_affine
  bool dropout = true;            ///< dropout is above zero
  bool attention_dropout = false;
  Activation activation = Activation::relu;
};

struct OptLayer {
  ScopeId scope = 0, attention_scope = 0, activation_scope = 0;
  Linear q, k, v, out;
  LayerNorm attention_norm, final_norm;
  Linear fc1, fc2;
};

struct OptDecoder {
  const OptConfig* config = nullptr;
  ScopeId scope = 0, embed_scope = 0, position_scope = 0;
  TensorId embed_tokens = none, embed_positions = none;
  LayerNorm final_norm;
  std::vector<OptLayer> layers;
};

inline std::int64_t vocabulary(const OptConfig& g) { return g.vocab; }
inline std::int64_t width(const OptConfig& g) { return g.hidden; }
inline Cache make_cache(const OptConfig& g) {
  Cache r;
  r.layers.resize(static_cast<std::size_t>(g.layers));
  return r;
}

inline LayerNorm make_opt_norm(Context& c, const OptConfig& g, const char* name) {
  if (g.affine) return make_layer_norm(c, name, g.hidden);
  return {.scope = c.b.child(name)};
}
inline Value opt_norm(Context& c, const LayerNorm& n, Value arg) {
  if (n.weight != none) return forward(c, n, std::move(arg));
  InScope in(c.b, n.scope);
  return eager::layer_norm(std::move(arg), {}, {});
}

/// In the order of OPTDecoderLayer.__init__ and OPTAttention.__init__ (k, v, q, out).
inline OptLayer make_opt_layer(Context& c, const OptConfig& g, std::int32_t index) {
  Module m(c, "layers", index);
  OptLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.k = make_linear(c, "k_proj", g.hidden, g.hidden, g.bias);
    l.v = make_linear(c, "v_proj", g.hidden, g.hidden, g.bias);
    l.q = make_linear(c, "q_proj", g.hidden, g.hidden, g.bias);
    l.out = make_linear(c, "out_proj", g.hidden, g.hidden, g.bias);
  }
  l.activation_scope = c.b.child("activation_fn");
  l.attention_norm = make_opt_norm(c, g, "self_attn_layer_norm");
  l.fc1 = make_linear(c, "fc1", g.hidden, g.intermediate, g.bias);
  l.fc2 = make_linear(c, "fc2", g.intermediate, g.hidden, g.bias);
  l.final_norm = make_opt_norm(c, g, "final_layer_norm");
  return l;
}

/// In the order of OPTDecoder.__init__; the table of positions has two entries ahead (OPTLearnedPositionalEmbedding).
inline OptDecoder make_decoder(Context& c, const OptConfig& g) {
  OptDecoder d{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "embed_tokens");
    d.embed_scope = e.scope;
    d.embed_tokens = parameter(c, "weight", {g.vocab, g.hidden});
  }
  {
    Module p(c, "embed_positions");
    d.position_scope = p.scope;
    d.embed_positions = parameter(c, "weight", {checked_add(g.positions, 2), g.hidden});
  }
  if (g.norm_before && g.final_norm) d.final_norm = make_opt_norm(c, g, "final_layer_norm");
  d.layers.reserve(static_cast<std::size_t>(g.layers));
  for (std::int64_t i = 0; i < g.layers; ++i) d.layers.push_back(make_opt_layer(c, g, static_cast<std::int32_t>(i)));
  return d;
}

/// modeling_opt.py, OPTAttention.forward: queries are scaled before the call, which then multiplies by one.
inline Attended self_attention(Context& c, const OptConfig& g, const OptLayer& l, const Value& x, const Value& mask,
                               CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const auto heads = [&](Value y) { return transpose(view(y, {batch, -1, g.heads, g.hidden / g.heads}), 1, 2); };
  Value q = mul_scalar(forward(c, l.q, x));
  q = heads(q);
  Value k = forward(c, l.k, x);
  Value v = forward(c, l.v, x);
  k = heads(k);
  v = heads(v);
  update(c, cache, k, v);
  Attended a = attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = forward(c, l.out, a.out);
  return a;
}

/// modeling_opt.py, OPTDecoderLayer.forward: the MLP works on flattened rows.
inline Value forward(Context& c, const OptConfig& g, const OptLayer& l, Value arg, const Value& mask,
                     CacheLayer& cache) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  if (g.norm_before) x = opt_norm(c, l.attention_norm, x);
  Attended attended = self_attention(c, g, l, x, mask, cache);  // the weights stay to the end
  x = std::move(attended.out);
  if (g.dropout) x = dropout(c, x);
  x = add(residual, x);
  if (!g.norm_before) x = opt_norm(c, l.attention_norm, x);
  const Shape shape = x.shape();
  x = reshape(x, {-1, x.size(-1)});
  residual = x;
  if (g.norm_before) x = opt_norm(c, l.final_norm, x);
  x = forward(c, l.fc1, x);
  {
    InScope a(c.b, l.activation_scope);
    x = activate(c, g.activation, x);
  }
  x = forward(c, l.fc2, x);
  if (g.dropout) x = dropout(c, x);
  x = view(add(residual, x), shape);
  if (!g.norm_before) x = opt_norm(c, l.final_norm, x);
  return x;
}

inline Value embed(Context& c, const OptDecoder& d, const Value& input_ids) {
  InScope in(c.b, d.embed_scope);
  return eager::embedding(Value(c.b, d.embed_tokens), input_ids);
}

/// modeling_opt.py, OPTDecoder.forward: embeddings[B, S, hidden] -> hidden states. Positions are counted over the mask.
inline Value forward(Context& c, const OptDecoder& d, Value arg, const Value& attention_mask, Cache& cache) {
  using namespace eager;
  const OptConfig& g = *d.config;
  Value embeds = std::move(arg);
  InScope in(c.b, d.scope);
  const std::int64_t tokens = embeds.size(1), seen = cache.layers.front().seen;
  Value position_ids = cumsum(attention_mask, DType::int64);
  position_ids = sub_scalar(mul(position_ids, attention_mask));
  position_ids = slice(position_ids, 1, seen, seen + tokens);
  Value mask = causal_mask(c, {.batch = embeds.size(0), .q_len = tokens, .kv_len = tokens + seen}, attention_mask);
  Value positions;
  {
    InScope p(c.b, d.position_scope);
    Value shifted = add_scalar(position_ids);
    positions = embedding(Value(c.b, d.embed_positions), std::move(shifted));
  }
  Value x = add(embeds, positions);
  DecoderStack stack(c);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const OptLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.k.weight}, x, entry, [&](const Value& h) { return forward(c, g, l, h, mask, entry); });
  }
  return g.norm_before && g.final_norm ? opt_norm(c, d.final_norm, x) : x;
}

}  // namespace vlmest
