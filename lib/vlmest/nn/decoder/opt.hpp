// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/cache.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// OPT (transformers models/opt, OPTDecoder): learned positions, biases, ReLU. Defaults: OPTConfig.
struct OptConfig {
  std::int64_t vocab = 50272;
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;  ///< ffn_dim
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t positions = 2048;  ///< max_position_embeddings
  std::int64_t embedding = 0;     ///< word_embed_proj_dim, the width of embeddings and head; 0: hidden
  bool norm_before = true;        ///< do_layer_norm_before
  bool final_norm = true;         ///< a norm behind the last layer, where norms stand before
  bool bias = true;               ///< enable_bias
  bool affine = true;             ///< layer_norm_elementwise_affine
  bool dropout = true;            ///< dropout is above zero
  bool attention_dropout = false;
  Activation activation = Activation::relu;
};

struct OptLayer {
  ScopeId scope = 0, activation_scope = 0;
  Projections attention;
  LayerNorm attention_norm, final_norm;
  Linear fc1, fc2;
};

struct OptDecoder {
  const OptConfig* config = nullptr;
  ScopeId scope = 0;
  Embedding embed_tokens, embed_positions;
  Linear project_out, project_in;  ///< only where embeddings have a width of their own
  LayerNorm final_norm;
  std::vector<OptLayer> layers;
};

inline Cache make_cache(const OptConfig& g) { return empty_cache(g.layers); }
inline std::int64_t width(const OptConfig& g) { return g.embedding > 0 ? g.embedding : g.hidden; }
inline bool projects(const OptConfig& g) { return width(g) != g.hidden; }

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
    l.attention = make_projections(
        c, {.hidden = g.hidden, .qkv_bias = g.bias, .out_bias = g.bias, .keys_first = true, .out = "out_proj"});
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
  d.embed_tokens = make_embedding(c, "embed_tokens", g.vocab, width(g));
  d.embed_positions = make_embedding(c, "embed_positions", checked_add(g.positions, 2), g.hidden);
  if (projects(g)) {
    d.project_out = make_linear(c, "project_out", g.hidden, width(g), false);
    d.project_in = make_linear(c, "project_in", width(g), g.hidden, false);
  }
  if (g.norm_before && g.final_norm) d.final_norm = make_opt_norm(c, g, "final_layer_norm");
  d.layers = make_layers(g.layers, [&](std::int32_t i) { return make_opt_layer(c, g, i); });
  return d;
}

/// modeling_opt.py, OPTAttention.forward: queries are scaled before the call, which then multiplies by one.
inline Attended self_attention(Context& c, const OptConfig& g, const OptLayer& l, const Value& x, const Value& mask,
                               CacheLayer& cache) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const std::int64_t head_dim = g.hidden / g.heads;
  Value q = split_heads(mul_scalar(forward(c, l.attention.q, x)), head_dim);
  Value k = forward(c, l.attention.k, x);
  Value v = forward(c, l.attention.v, x);
  k = split_heads(std::move(k), head_dim);
  v = split_heads(std::move(v), head_dim);
  update(c, cache, k, v);
  Attended a =
      stacks::attend(c, {.q = q, .k = k, .v = v, .mask = mask, .causal = true, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
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
    InScope p(c.b, d.embed_positions.scope);
    Value shifted = add_scalar(position_ids);
    positions = forward(c, d.embed_positions, std::move(shifted));
  }
  if (projects(g)) embeds = forward(c, d.project_in, embeds);
  Value x = add(embeds, positions);
  DecoderStack stack(c, position_ids);
  for (std::size_t i = 0; i < d.layers.size(); ++i) {
    const OptLayer& l = d.layers[i];
    CacheLayer& entry = cache.layers[i];
    x = stack({0, l.scope, l.attention.first()}, x, entry,
              [&](const Value& h) { return forward(c, g, l, h, mask, entry); });
  }
  if (g.norm_before && g.final_norm) x = opt_norm(c, d.final_norm, x);
  return projects(g) ? forward(c, d.project_out, x) : x;
}

}  // namespace vlmest
