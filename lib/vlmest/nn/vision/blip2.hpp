// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// BLIP-2's vision transformer, EVA-CLIP's shape (transformers models/blip_2, Blip2VisionModel). Defaults:
/// Blip2VisionConfig.
struct Blip2Vision {
  std::int64_t hidden = 1408;
  std::int64_t intermediate = 6144;
  std::int64_t layers = 39;
  std::int64_t heads = 16;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  bool qkv_bias = true;
  Activation activation = Activation::gelu;
};

struct Blip2VisionLayer {
  ScopeId scope = 0, attention_scope = 0;
  Linear qkv, projection;
  LayerNorm norm1, norm2;
  Mlp mlp;
};

struct Blip2Tower {
  const Blip2Vision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  TensorId class_embedding = none, position_embedding = none;
  PatchConv patches;
  std::vector<Blip2VisionLayer> layers;
  LayerNorm post_norm;
};

/// In the order of Blip2EncoderLayer.__init__.
inline Blip2VisionLayer make_blip2_vision_layer(Context& c, const Blip2Vision& g, std::int32_t index) {
  Module m(c, "layers", index);
  Blip2VisionLayer l{.scope = m.scope};
  {
    Module a(c, "self_attn");
    l.attention_scope = a.scope;
    l.qkv = make_linear(c, "qkv", g.hidden, checked_mul(g.hidden, 3), g.qkv_bias);
    l.projection = make_linear(c, "projection", g.hidden, g.hidden, true);
  }
  l.norm1 = make_layer_norm(c, "layer_norm1", g.hidden);
  l.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
  l.norm2 = make_layer_norm(c, "layer_norm2", g.hidden);
  return l;
}

inline Blip2Tower make_tower(Context& c, const Blip2Vision& g) {
  Blip2Tower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size;
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.class_embedding = parameter(c, "class_embedding", {1, 1, g.hidden});
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.position_embedding = parameter(c, "position_embedding", {1, checked_add(checked_mul(side, side), 1), g.hidden});
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_blip2_vision_layer(c, g, i); });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// modeling_blip_2.py, Blip2VisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, 1 + patches, hidden].
inline Value blip2_embeddings(Context& c, const Blip2Tower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  const Value patches = patch_sequence(forward(c, t.patches, pixels));
  const Value cls = expand(Value(c.b, t.class_embedding), {pixels.size(0), 1, -1});
  Value x = cat(cls, patches, 1);
  x = add(x, Value(c.b, t.position_embedding));
  return x;
}

/// modeling_blip_2.py, Blip2Attention.forward: q, k and v are views of one projection. Eager attention here has its
/// softmax in the activations' type.
inline Attended blip2_attention(Context& c, const Blip2VisionLayer& l, const Value& x, std::int64_t heads) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  Value packed = forward(c, l.qkv, x);
  packed = permute(reshape(packed, {batch, tokens, 3, heads, x.size(2) / heads}), {2, 0, 3, 1, 4});
  Value q = select(packed, 0, 0), k = select(packed, 0, 1), v = select(packed, 0, 2);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .fp32_softmax = false});
  project_out(c, l.projection, a);
  return a;
}

/// modeling_blip_2.py, Blip2EncoderLayer.forward.
inline Value forward(Context& c, const Blip2VisionLayer& l, Value arg, std::int64_t heads) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.norm1, x);
  Attended attended = blip2_attention(c, l, x, heads);  // the weights stay to the end
  x = std::move(attended.out);
  x = eager::add(x, residual);
  residual = x;
  x = forward(c, l.norm2, x);
  x = forward(c, l.mlp, x);
  x = eager::add(x, residual);
  return x;
}

/// modeling_blip_2.py, Blip2VisionModel.forward: the embeddings and the encoder's result stay until it returns.
inline TowerOutput forward(Context& c, const Blip2Tower& t, const Value& pixels) {
  InScope in(c.b, t.scope);
  Value embeds = input_embedding(c, blip2_embeddings(c, t, pixels));
  Value encoded = embeds;
  LayerRepeater repeat(c.b);
  for (const auto& l : t.layers)
    encoded = repeat({0, l.scope, l.qkv.weight}, encoded, {},
                     [&](const Value& h) { return forward(c, l, h, t.config->heads); });
  TowerOutput out;
  out.last = forward(c, t.post_norm, encoded);
  out.pooled = forward(c, t.post_norm, eager::select(out.last, 1, 0));
  return out;
}

}  // namespace vlmest
