// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/residual.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_layers.hpp>

namespace vlmest {

/// CLIP's vision transformer (transformers models/clip, CLIPVisionModel).
struct ClipVision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 32;
  std::int64_t channels = 3;
  Activation activation = Activation::quick_gelu;
};

/// A pre-norm encoder layer with biases everywhere; CLIP's and SigLIP's.
struct ClipLayer {
  ScopeId scope = 0;
  Projections attention;
  LayerNorm norm1, norm2;
  Mlp mlp;
  bool split_each = false;  ///< SigLIP: heads are split right behind each projection
  bool causal = false;      ///< Phi-4-multimodal: what its attention calls itself, which SDPA without a mask follows
};

struct ClipTower {
  const ClipVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  TensorId class_embedding = none, position_ids = none;
  PatchConv patches;
  Embedding positions;
  LayerNorm pre_norm, post_norm;
  std::vector<ClipLayer> layers;
};

/// The order of CLIPEncoderLayer.__init__ and CLIPAttention.__init__ (k, v, q, out), or of SiglipEncoderLayer.__init__,
/// which makes each norm before what it norms for.
inline ClipLayer make_clip_layer(Context& c, std::int64_t hidden, std::int64_t intermediate, Activation activation,
                                 std::int32_t index, bool norms_first = false) {
  Module m(c, "layers", index);
  ClipLayer l{.scope = m.scope};
  if (norms_first) l.norm1 = make_layer_norm(c, "layer_norm1", hidden);
  {
    Module a(c, "self_attn");
    l.attention = make_projections(
        c, {.hidden = hidden, .qkv_bias = true, .out_bias = true, .keys_first = true, .out = "out_proj"});
  }
  if (!norms_first) l.norm1 = make_layer_norm(c, "layer_norm1", hidden);
  if (norms_first) l.norm2 = make_layer_norm(c, "layer_norm2", hidden);
  l.mlp = make_mlp(c, hidden, intermediate, activation);
  if (!norms_first) l.norm2 = make_layer_norm(c, "layer_norm2", hidden);
  return l;
}
/// SigLIP's, and Idefics3's, which is a copy of it but for the order of the norms.
inline ClipLayer make_siglip_layer(Context& c, std::int64_t hidden, std::int64_t intermediate, Activation activation,
                                   std::int32_t index, bool norms_first) {
  ClipLayer l = make_clip_layer(c, hidden, intermediate, activation, index, norms_first);
  l.split_each = true;
  return l;
}
/// The first parameter that the layer declared.
inline TensorId first_parameter(const ClipLayer& l) { return std::min(l.attention.first(), l.norm1.weight); }

inline ClipTower make_tower(Context& c, const ClipVision& g) {
  ClipTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size, positions = checked_add(checked_mul(side, side), 1);
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.class_embedding = parameter(c, "class_embedding", {g.hidden});
    t.patches = make_patch_conv(c, "patch_embedding", g, false);
    t.positions = make_embedding(c, "position_embedding", positions, g.hidden);
    t.position_ids = buffer(c, "position_ids", {1, positions}, DType::int64);
  }
  t.pre_norm = make_layer_norm(c, "pre_layrnorm", g.hidden);
  {
    Module e(c, "encoder");
    t.layers = make_layers(
        g.layers, [&](std::int32_t i) { return make_clip_layer(c, g.hidden, g.intermediate, g.activation, i); });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// modeling_clip.py, CLIPAttention.forward; modeling_siglip.py, SiglipAttention.forward.
inline Attended clip_attention(Context& c, const ClipLayer& l, const Value& x, std::int64_t heads,
                               const Value& mask = {}, bool dropout = false) {
  InScope in(c.b, l.attention.scope);
  const std::int64_t head_dim = x.size(2) / heads;
  Qkv y = l.split_each ? project_heads(c, l.attention, x, head_dim) : project(c, l.attention, x);
  if (!l.split_each) split_heads(y, head_dim);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .mask = mask, .causal = l.causal, .dropout = dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_clip.py, CLIPEncoderLayer.forward.
inline Value forward(Context& c, const ClipLayer& l, Value arg, std::int64_t heads, const Value& mask = {},
                     bool dropout = false) {
  return pre_norm_layer(
      c, l.scope, std::move(arg), l.norm1,
      [&](const Value& x) { return clip_attention(c, l, x, heads, mask, dropout); }, l.norm2,
      [&](const Value& x) { return forward(c, l.mlp, x); });
}

/// modeling_clip.py, CLIPVisionEmbeddings.forward: pixels[N, 3, H, W] of any type -> [N, 1 + patches, hidden].
inline Value clip_embeddings(Context& c, const ClipTower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  const Value patches = patch_sequence(input_embedding(c, forward(c, t.patches, to(pixels, c.dtype()))));
  const Value cls = expand(Value(c.b, t.class_embedding), {pixels.size(0), 1, -1});
  Value x = cat(cls, patches, 1);
  Value position = forward(c, t.positions, Value(c.b, t.position_ids));
  x = add(x, std::move(position));
  return x;
}

/// modeling_clip.py, CLIPVisionModel.forward.
inline TowerOutput forward(Context& c, const ClipTower& t, const TowerInput& input) {
  using namespace eager;
  InScope in(c.b, t.scope);
  TowerOutput out;
  Value x = clip_embeddings(c, t, input.pixels);
  x = forward(c, t.pre_norm, x);
  out.last = run_layers(c, t.layers, x, 1, input, out,
                        [&](const ClipLayer& l, const Value& h) { return forward(c, l, h, t.config->heads); });
  out.pooled = forward(c, t.post_norm, select(out.last, 1, 0));
  return out;
}

}  // namespace vlmest
