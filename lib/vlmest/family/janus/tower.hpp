// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_layers.hpp>

namespace vlmest {

/// Janus' vision transformer (transformers models/janus, JanusVisionModel): SigLIP's under names and dropouts of its
/// own, whose pooled state is its first token.
struct JanusVision {
  std::int64_t hidden = 1024;
  std::int64_t intermediate = 4096;  ///< mlp_ratio times hidden_size
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t image_size = 384;
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  Activation activation = Activation::gelu;
  bool attention_bias = true;
  bool attention_dropout = false;   ///< in training mode
  bool projection_dropout = false;  ///< in training mode, behind attention
  bool hidden_dropout = false;      ///< in training mode, behind each layer of the MLP
};

struct JanusVisionLayer {
  ScopeId scope = 0, attention_scope = 0, dropout_scope = 0, mlp_dropout_scopes[2] = {0, 0};
  LayerNorm norm1, norm2;
  Linear q, k, v, out;
  Mlp mlp;
};
inline TensorId first_parameter(const JanusVisionLayer& l) { return l.norm1.weight; }

struct JanusTower {
  const JanusVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  TensorId position_ids = none;
  std::vector<JanusVisionLayer> layers;
  LayerNorm post_norm;
};

/// JanusVisionEncoderLayer.__init__.
inline JanusVisionLayer make_janus_layer(Context& c, const JanusVision& g, std::int32_t index) {
  Module m(c, "layers", index);
  JanusVisionLayer l{.scope = m.scope};
  l.norm1 = make_layer_norm(c, "layer_norm1", g.hidden);
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.q = make_linear(c, "q_proj", g.hidden, g.hidden, g.attention_bias);
    l.k = make_linear(c, "k_proj", g.hidden, g.hidden, g.attention_bias);
    l.v = make_linear(c, "v_proj", g.hidden, g.hidden, g.attention_bias);
    l.out = make_linear(c, "projection_layer", g.hidden, g.hidden, true);
    l.dropout_scope = c.b.child("projection_dropout");
  }
  l.norm2 = make_layer_norm(c, "layer_norm2", g.hidden);
  l.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
  InScope in(c.b, l.mlp.scope);
  l.mlp_dropout_scopes[0] = c.b.child("dropout1");
  l.mlp_dropout_scopes[1] = c.b.child("dropout2");
  return l;
}

inline JanusTower make_tower(Context& c, const JanusVision& g) {
  JanusTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size, positions = checked_mul(side, side);
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.positions = make_embedding(c, "position_embedding", positions, g.hidden);
    t.position_ids = buffer(c, "position_ids", {1, positions}, DType::int64);
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_janus_layer(c, g, i); });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// modeling_janus.py, JanusVisionAttention.forward: all three projections, then heads, of queries and keys first in a
/// row for norms that are not there; the result of attention stays a variable beside what the output layer makes of it.
inline Attended janus_attention(Context& c, const JanusVision& g, const JanusVisionLayer& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  Qkv y;
  y.q = forward(c, l.q, x);
  y.k = forward(c, l.k, x);
  y.v = forward(c, l.v, x);
  const std::int64_t head_dim = g.hidden / g.heads;
  for (Value* rows : {&y.q, &y.k}) *rows = reshape(*rows, {-1, g.heads, head_dim});
  for (Value* heads : {&y.q, &y.k, &y.v})
    *heads = transpose(reshape(*heads, {x.size(0), x.size(1), g.heads, head_dim}), 1, 2);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .dropout = g.attention_dropout});
  const Value attended = reshape(a.out, {x.size(0), x.size(1), g.hidden});
  a.out = forward(c, l.out, attended);
  if (g.projection_dropout) {
    InScope drops(c.b, l.dropout_scope);
    a.out = dropout(c, a.out);
  }
  return a;
}

/// modeling_janus.py, JanusVisionMLP.forward: each step rebinds the variable.
inline Value janus_mlp(Context& c, const JanusVision& g, const JanusVisionLayer& l, Value arg) {
  if (!g.hidden_dropout) return forward(c, l.mlp, std::move(arg));
  Value x = std::move(arg);
  InScope in(c.b, l.mlp.scope);
  const auto drop = [&](ScopeId scope) {
    InScope d(c.b, scope);
    x = dropout(c, x);
  };
  x = forward(c, l.mlp.fc1, x);
  {
    InScope a(c.b, l.mlp.activation_scope);
    x = activate(c, l.mlp.activation, x);
  }
  drop(l.mlp_dropout_scopes[0]);
  x = forward(c, l.mlp.fc2, x);
  drop(l.mlp_dropout_scopes[1]);
  return x;
}

/// modeling_janus.py, JanusVisionEncoderLayer.forward.
inline Value forward(Context& c, const JanusVision& g, const JanusVisionLayer& l, Value arg) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.norm1, [&](const Value& x) { return janus_attention(c, g, l, x); }, l.norm2,
      [&](const Value& x) { return janus_mlp(c, g, l, x); });
}

/// modeling_janus.py, JanusVisionModel.forward: the last norm runs over the first token once more.
inline TowerOutput forward(Context& c, const JanusTower& t, const TowerInput& input) {
  using namespace eager;
  InScope in(c.b, t.scope);
  TowerOutput out;
  Value embedded;
  {
    InScope e(c.b, t.embeddings_scope);
    const Value patches = patch_sequence(forward(c, t.patches, input.pixels));
    Value positions = forward(c, t.positions, Value(c.b, t.position_ids));
    embedded = add(patches, std::move(positions));
  }
  embedded = input_embedding(c, std::move(embedded));
  const Value last = run_layers(c, t.layers, embedded, 0, input, out,
                                [&](const JanusVisionLayer& l, const Value& h) { return forward(c, *t.config, l, h); });
  out.last = forward(c, t.post_norm, last);
  out.pooled = forward(c, t.post_norm, select(out.last, 1, 0));
  return out;
}

}  // namespace vlmest
