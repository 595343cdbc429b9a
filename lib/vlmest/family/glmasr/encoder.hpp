// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/audio/conv.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/attention.hpp>

namespace vlmest {

/// GLM-ASR's encoder (transformers 5.17 models/glmasr, GlmAsrEncoder): Whisper's convolutions, then layers whose
/// positions are rotations of a part of each head.
struct GlmAsrEncoder {
  std::int64_t hidden = 1280;
  std::int64_t intermediate = 5120;
  std::int64_t layers = 32;
  std::int64_t heads = 20;
  std::int64_t kv_heads = 20;
  std::int64_t head_dim = 64;
  std::int64_t rotary_dim = 32;  ///< channels of a head that turn
  std::int64_t mels = 128;
  Activation activation = Activation::gelu;
};

struct GlmAsrLayer {
  ScopeId scope = 0;
  Projections attention;
  Mlp mlp;
  LayerNorm norm1, norm2;
};

struct GlmAsrTower {
  const GlmAsrEncoder* config = nullptr;
  ScopeId scope = 0;
  Conv1d conv1, conv2;
  std::vector<GlmAsrLayer> layers;
  LayerNorm norm;
  Rope rope;
};

/// In the order of GlmAsrEncoderLayer.__init__.
inline GlmAsrLayer make_glmasr_layer(Context& c, const GlmAsrEncoder& g, std::int32_t index) {
  Module m(c, "layers", index);
  GlmAsrLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention.scope = a.scope;
    const std::int64_t queries = checked_mul(g.heads, g.head_dim), keys = checked_mul(g.kv_heads, g.head_dim);
    l.attention.q = make_linear(c, "q_proj", g.hidden, queries, true);
    l.attention.k = make_linear(c, "k_proj", g.hidden, keys, false);
    l.attention.v = make_linear(c, "v_proj", g.hidden, keys, true);
    l.attention.out = make_linear(c, "o_proj", queries, g.hidden, true);
  }
  {
    Module f(c, "mlp");
    l.mlp = {.scope = f.scope, .activation = g.activation};
    l.mlp.fc1 = make_linear(c, "fc1", g.hidden, g.intermediate, true);
    l.mlp.fc2 = make_linear(c, "fc2", g.intermediate, g.hidden, true);
    l.mlp.activation_scope = c.b.child("act_fn");
  }
  l.norm1 = make_layer_norm(c, "input_layernorm", g.hidden);
  l.norm2 = make_layer_norm(c, "post_attention_layernorm", g.hidden);
  return l;
}

/// In the order of GlmAsrEncoder.__init__, in the current scope.
inline GlmAsrTower make_tower(Context& c, const GlmAsrEncoder& g) {
  GlmAsrTower t{.config = &g, .scope = c.b.scope()};
  t.conv1 = make_conv1d(c, "conv1", g.mels, g.hidden, 3, 1);
  t.conv2 = make_conv1d(c, "conv2", g.hidden, g.hidden, 3, 2);
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_glmasr_layer(c, g, i); });
  t.norm = make_layer_norm(c, "norm", g.hidden);
  t.rope = make_rope(c, "rotary_emb", g.rotary_dim);
  return t;
}

/// modeling_glmasr.py, GlmAsrAttention.forward.
inline Attended glmasr_attention(Context& c, const GlmAsrLayer& l, const GlmAsrEncoder& g, const Value& x,
                                 const CosSin& positions) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  Qkv y = project_heads(c, l.attention, x, g.head_dim);
  apply_joint_partial_rope(c, y.q, y.k, positions);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_glmasr.py, GlmAsrEncoder.forward: features[N, mels, frames] -> [N, states, hidden].
inline Value forward(Context& c, const GlmAsrTower& t, const Value& features) {
  using namespace eager;
  const GlmAsrEncoder& g = *t.config;
  InScope in(c.b, t.scope);
  Value embeds = unary(functions::gelu, input_embedding(c, forward(c, t.conv1, features)));
  embeds = unary(functions::gelu, forward(c, t.conv2, embeds));
  embeds = transpose(embeds, 1, 2);
  Value x = embeds;
  CosSin positions;
  {
    const Value at = unsqueeze(arange(c.b, x.size(1)), 0);
    positions = forward(c, t.rope, at);
  }
  LayerRepeater repeat(c.b);
  for (const GlmAsrLayer& l : t.layers)
    x = repeat({0, l.scope, l.attention.q.weight}, x, {}, [&](const Value& h) {
      return pre_norm_layer(
          c, l.scope, h, l.norm1, [&](const Value& y) { return glmasr_attention(c, l, g, y, positions); }, l.norm2,
          [&](const Value& y) { return forward(c, l.mlp, y); });
    });
  return forward(c, t.norm, x);
}

}  // namespace vlmest
