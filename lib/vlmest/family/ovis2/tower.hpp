// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/eager/pad.hpp>
#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_layers.hpp>

namespace vlmest {

/// Ovis2's tower (transformers 5.17 models/ovis2, Ovis2VisionModel): AIMv2, whose patches are joined in squares and
/// become weights over a vocabulary of visual words.
struct Ovis2Vision {
  std::int64_t hidden = 1024;
  std::int64_t intermediate = 2816;
  std::int64_t layers = 24;
  std::int64_t heads = 8;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  bool qkv_bias = false;  ///< of the output too
  bool mlp_bias = false;
  Activation activation = Activation::silu;
  std::int64_t words = 16384;   ///< vocab_size, indicators included
  std::int64_t indicators = 5;  ///< num_visual_indicator_tokens
  std::int64_t stride = 1;      ///< hidden_stride: side of the squares

  std::int64_t side() const { return image_size / patch_size; }
};

struct Ovis2Layer {
  ScopeId scope = 0;
  Projections attention;
  GatedMlp mlp;
  RmsNorm norm1, norm2;
};
/// The first parameter that the layer declared.
inline TensorId first_parameter(const Ovis2Layer& l) { return l.attention.first(); }

struct Ovis2Tower {
  const Ovis2Vision* config = nullptr;
  ScopeId scope = 0, transformer_scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  TensorId position_ids = none;
  RmsNorm norm, post_norm;
  std::vector<Ovis2Layer> layers;
  Linear head;
  LayerNorm head_norm;
};

/// In the order of Ovis2VisionEncoderLayer.__init__.
inline Ovis2Layer make_ovis2_layer(Context& c, const Ovis2Vision& g, std::int32_t index) {
  Module m(c, "layers", index);
  Ovis2Layer l{.scope = m.scope};
  {
    Module a(c, "attention");
    l.attention = make_projections(
        c, {.hidden = g.hidden, .qkv_bias = g.qkv_bias, .out_bias = g.qkv_bias, .keys_first = true, .out = "out_proj"});
  }
  l.mlp = make_gated_mlp(c, "ffn", g.hidden, g.intermediate, g.mlp_bias, g.activation);
  l.norm1 = make_rms_norm(c, "rms_norm1", g.hidden);
  l.norm2 = make_rms_norm(c, "rms_norm2", g.hidden);
  return l;
}

inline Ovis2Tower make_tower(Context& c, const Ovis2Vision& g) {
  Ovis2Tower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t positions = checked_mul(g.side(), g.side());
  {
    Module inner(c, "transformer");
    t.transformer_scope = inner.scope;
    {
      Module e(c, "embeddings");
      t.embeddings_scope = e.scope;
      t.patches = make_patch_conv(c, "patch_embedding", g, true);
      t.positions = make_embedding(c, "position_embedding", positions, g.hidden);
      t.position_ids = buffer(c, "position_ids", {1, positions}, DType::int64);
      t.norm = make_rms_norm(c, "rms_norm", g.hidden);
    }
    {
      Module e(c, "encoder");
      t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_ovis2_layer(c, g, i); });
    }
    t.post_norm = make_rms_norm(c, "rms_norm", g.hidden);
  }
  const std::int64_t words = g.words - g.indicators;
  t.head = make_linear(c, "head_linear", checked_mul(g.hidden, checked_mul(g.stride, g.stride)), words, false);
  t.head_norm = make_layer_norm(c, "head_norm", words);
  return t;
}

/// modeling_ovis2.py, Ovis2VisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, patches, hidden].
inline Value ovis2_embeddings(Context& c, const Ovis2Tower& t, const Value& pixels) {
  InScope in(c.b, t.embeddings_scope);
  const Value patches = forward(c, t.patches, pixels);
  Value x = patch_sequence(patches);
  x = forward(c, t.norm, x);
  x = eager::add(x, forward(c, t.positions, Value(c.b, t.position_ids)));
  return x;
}

/// modeling_ovis2.py, Ovis2VisionAttention.forward.
inline Attended ovis2_attention(Context& c, const Ovis2Layer& l, const Value& x, std::int64_t heads) {
  InScope in(c.b, l.attention.scope);
  const Qkv y = project_heads(c, l.attention, x, x.size(2) / heads);
  Attended a = stacks::attend(c, {y.q, y.k, y.v, {}, true});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_ovis2.py, Ovis2VisionEncoderLayer.forward: every result has a name of its own.
inline Value forward(Context& c, const Ovis2Layer& l, Value arg, std::int64_t heads) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value normed = forward(c, l.norm1, x);
  const Attended attended = ovis2_attention(c, l, normed, heads);
  x = eager::add(x, attended.out);
  normed = forward(c, l.norm2, x);
  const Value fed = forward(c, l.mlp, normed);
  x = eager::add(x, fed);
  return x;
}

/// What the tower's output keeps beside each other.
struct VisualTokens {
  Value last;     ///< last_hidden_state: squares of patches
  Value weights;  ///< pooler_output: [N, squares, words], which sum up to one
};

/// modeling_ovis2.py, Ovis2VisionTransformer.forward.
inline Value ovis2_states(Context& c, const Ovis2Tower& t, const Value& pixels) {
  InScope in(c.b, t.transformer_scope);
  const Value embedded = ovis2_embeddings(c, t, pixels);
  TowerOutput out;
  const TowerInput called{pixels, {}};
  const Value encoded = run_layers(c, t.layers, embedded, 0, called, out, [&](const Ovis2Layer& l, const Value& h) {
    return forward(c, l, h, t.config->heads);
  });
  return forward(c, t.post_norm, encoded);
}

/// modeling_ovis2.py, Ovis2VisionModel.forward.
inline VisualTokens forward(Context& c, const Ovis2Tower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.scope);
  const Value states = ovis2_states(c, t, pixels);
  VisualTokens r{.last = states, .weights = {}};
  if (const std::int64_t s = t.config->stride; s > 1) {
    const std::int64_t n = states.size(0), side = t.config->side() / s, width = states.size(2);
    r.last = pad(r.last, 1, 0, 0);
    r.last = reshape(r.last, {n, side, s, side, s, width});
    r.last = permute(r.last, {0, 1, 3, 2, 4, 5});
    r.last = reshape(r.last, {n, side * side, s * s * width});
  }
  Value logits = forward(c, t.head, r.last);
  logits = forward(c, t.head_norm, logits);
  r.weights = softmax(logits);
  return r;
}

}  // namespace vlmest
