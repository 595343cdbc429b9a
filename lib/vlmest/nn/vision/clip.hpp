// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/attention.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

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
  ScopeId attention_scope = 0;
  Linear q, k, v, out;
  LayerNorm norm1, norm2;
  Mlp mlp;
};

struct ClipTower {
  const ClipVision* config = nullptr;
  ScopeId scope = 0;
  ScopeId embeddings_scope = 0, patch_scope = 0, position_scope = 0;
  TensorId class_embedding = none, patch_weight = none, position_weight = none, position_ids = none;
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
    l.attention_scope = a.scope;
    l.k = make_linear(c, "k_proj", hidden, hidden, true);
    l.v = make_linear(c, "v_proj", hidden, hidden, true);
    l.q = make_linear(c, "q_proj", hidden, hidden, true);
    l.out = make_linear(c, "out_proj", hidden, hidden, true);
  }
  if (!norms_first) l.norm1 = make_layer_norm(c, "layer_norm1", hidden);
  if (norms_first) l.norm2 = make_layer_norm(c, "layer_norm2", hidden);
  {
    Module p(c, "mlp");
    l.mlp.scope = p.scope;
    l.mlp.activation = activation;
    l.mlp.activation_scope = c.b.child("activation_fn");
    l.mlp.fc1 = make_linear(c, "fc1", hidden, intermediate, true);
    l.mlp.fc2 = make_linear(c, "fc2", intermediate, hidden, true);
  }
  if (!norms_first) l.norm2 = make_layer_norm(c, "layer_norm2", hidden);
  return l;
}
/// The first parameter that the layer declared.
inline TensorId first_parameter(const ClipLayer& l) { return std::min(l.k.weight, l.norm1.weight); }

inline ClipTower make_tower(Context& c, const ClipVision& g) {
  ClipTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size, positions = checked_add(checked_mul(side, side), 1);
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.class_embedding = parameter(c, "class_embedding", {g.hidden});
    {
      Module p(c, "patch_embedding");
      t.patch_scope = p.scope;
      t.patch_weight = parameter(c, "weight", {g.hidden, g.channels, g.patch_size, g.patch_size});
    }
    {
      Module p(c, "position_embedding");
      t.position_scope = p.scope;
      t.position_weight = parameter(c, "weight", {positions, g.hidden});
    }
    t.position_ids = buffer(c, "position_ids", {1, positions}, DType::int64);
  }
  t.pre_norm = make_layer_norm(c, "pre_layrnorm", g.hidden);
  {
    Module e(c, "encoder");
    for (std::int64_t i = 0; i < g.layers; ++i)
      t.layers.push_back(make_clip_layer(c, g.hidden, g.intermediate, g.activation, static_cast<std::int32_t>(i)));
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// modeling_clip.py, CLIPAttention.forward.
inline Attended clip_attention(Context& c, const ClipLayer& l, const Value& x, std::int64_t heads) {
  using namespace eager;
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1), head_dim = x.size(2) / heads;
  Value q = forward(c, l.q, x);
  Value k = forward(c, l.k, x);
  Value v = forward(c, l.v, x);
  auto split_heads = [&](Value& y) { y = transpose(view(y, {batch, tokens, heads, head_dim}), 1, 2); };
  split_heads(q);
  split_heads(k);
  split_heads(v);
  Attended a = attend(c, {q, k, v, {}, false});
  a.out = reshape(a.out, {batch, tokens, -1});
  a.out = forward(c, l.out, a.out);
  return a;
}

/// modeling_clip.py, CLIPEncoderLayer.forward.
inline Value forward(Context& c, const ClipLayer& l, Value arg, std::int64_t heads) {
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  Value residual = x;
  x = forward(c, l.norm1, x);
  Attended attended = clip_attention(c, l, x, heads);  // the weights stay to the end
  x = std::move(attended.out);
  x = eager::add(residual, x);
  residual = x;
  x = forward(c, l.norm2, x);
  x = forward(c, l.mlp, x);
  x = eager::add(residual, x);
  return x;
}

/// modeling_clip.py, CLIPVisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, 1 + patches, hidden].
inline Value clip_embeddings(Context& c, const ClipTower& t, const Value& pixels) {
  using namespace eager;
  const ClipVision& g = *t.config;
  InScope in(c.b, t.embeddings_scope);
  const std::int64_t n = pixels.size(0);
  Value patches;
  {
    InScope conv(c.b, t.patch_scope);
    patches = conv2d(pixels, Value(c.b, t.patch_weight), {}, g.patch_size);
  }
  patches = transpose(flatten(patches, 2, 3), 1, 2);
  Value cls = expand(Value(c.b, t.class_embedding), {n, 1, -1});
  Value x = cat(cls, patches, 1);
  Value position;
  {
    InScope table(c.b, t.position_scope);
    position = embedding(Value(c.b, t.position_weight), Value(c.b, t.position_ids));
  }
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
  if (input.keep_hidden_states) out.hidden_states.push_back(x);
  out.last = x;
  LayerRepeater repeat(c.b);
  std::size_t layer = 0;
  for (const auto& l : t.layers) {
    out.last = repeat({0, l.scope, first_parameter(l)}, out.last, {}, [&](const Value& h) { return forward(c, l, h, t.config->heads); });
    out.last = insert_after_layer(c, layer++, std::move(out.last), 1);
    if (input.keep_hidden_states) out.hidden_states.push_back(out.last);
  }
  out.pooled = forward(c, t.post_norm, select(out.last, 1, 0));
  return out;
}

}  // namespace vlmest
