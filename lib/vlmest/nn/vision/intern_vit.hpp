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

/// InternViT (transformers models/internvl, InternVLVisionModel): a class token, layers whose two branches are scaled
/// per channel, layer norms in the 300M tower, root-mean-square norms and normed queries and keys in the 6B one.
struct InternVitVision {
  std::int64_t hidden = 1024;
  std::int64_t intermediate = 4096;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  Activation activation = Activation::gelu;
  bool qkv_bias = false;     ///< attention_bias
  bool qk_norm = false;      ///< norms of whole query and key vectors, all heads together
  bool rms_norm = false;     ///< norm_type "rms_norm"; else "layer_norm"
  bool mask_token = false;   ///< a parameter that only pre-training uses
  bool positions = true;     ///< use_absolute_position_embeddings
  bool mean_pooling = true;  ///< switches the final norm off
};

/// One of the two norms that norm_type chooses between.
struct InternVitNorm {
  bool rms = false;
  LayerNorm layer;
  RmsNorm root;
};

struct InternVitLayer {
  ScopeId scope = 0, attention_scope = 0;
  Linear q, k, v, out;
  RmsNorm q_norm, k_norm;
  Mlp mlp;
  InternVitNorm before, after;
  TensorId lambda_1 = none, lambda_2 = none;
};

struct InternVitTower {
  const InternVitVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0, patch_scope = 0, projection_scope = 0;
  TensorId cls_token = none, patch_weight = none, patch_bias = none, positions = none;
  std::vector<InternVitLayer> layers;
  LayerNorm norm;
};

inline InternVitNorm make_intern_vit_norm(Context& c, const char* name, const InternVitVision& g) {
  InternVitNorm n{.rms = g.rms_norm};
  if (n.rms)
    n.root = make_rms_norm(c, name, g.hidden);
  else
    n.layer = make_layer_norm(c, name, g.hidden);
  return n;
}
inline Value forward(Context& c, const InternVitNorm& n, const Value& x) {
  return n.rms ? forward(c, n.root, x) : forward(c, n.layer, x);
}

/// The order of InternVLVisionLayer.__init__ and InternVLVisionAttention.__init__.
inline InternVitLayer make_intern_vit_layer(Context& c, const InternVitVision& g, std::int32_t index) {
  Module m(c, "layer", index);
  InternVitLayer l{.scope = m.scope};
  {
    Module a(c, "attention");
    l.attention_scope = a.scope;
    l.q = make_linear(c, "q_proj", g.hidden, g.hidden, g.qkv_bias);
    l.k = make_linear(c, "k_proj", g.hidden, g.hidden, g.qkv_bias);
    l.v = make_linear(c, "v_proj", g.hidden, g.hidden, g.qkv_bias);
    l.out = make_linear(c, "projection_layer", g.hidden, g.hidden, true);
    if (g.qk_norm) {
      l.q_norm = make_rms_norm(c, "q_norm", g.hidden);
      l.k_norm = make_rms_norm(c, "k_norm", g.hidden);
    }
  }
  {
    Module p(c, "mlp");
    l.mlp.scope = p.scope;
    l.mlp.activation = g.activation;
    l.mlp.activation_scope = c.b.child("activation_fn");
    l.mlp.fc1 = make_linear(c, "fc1", g.hidden, g.intermediate, true);
    l.mlp.fc2 = make_linear(c, "fc2", g.intermediate, g.hidden, true);
  }
  l.before = make_intern_vit_norm(c, "layernorm_before", g);
  l.after = make_intern_vit_norm(c, "layernorm_after", g);
  l.lambda_1 = parameter(c, "lambda_1", {g.hidden});
  l.lambda_2 = parameter(c, "lambda_2", {g.hidden});
  return l;
}

inline InternVitTower make_tower(Context& c, const InternVitVision& g) {
  InternVitTower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size;
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.cls_token = parameter(c, "cls_token", {1, 1, g.hidden});
    if (g.mask_token) parameter(c, "mask_token", {1, 1, g.hidden});
    {
      Module p(c, "patch_embeddings");
      t.patch_scope = p.scope;
      Module conv(c, "projection");
      t.projection_scope = conv.scope;
      t.patch_weight = parameter(c, "weight", {g.hidden, g.channels, g.patch_size, g.patch_size});
      t.patch_bias = parameter(c, "bias", {g.hidden});
    }
    if (g.positions)
      t.positions = parameter(c, "position_embeddings", {1, checked_add(checked_mul(side, side), 1), g.hidden});
  }
  {
    Module e(c, "encoder");
    for (std::int64_t i = 0; i < g.layers; ++i)
      t.layers.push_back(make_intern_vit_layer(c, g, static_cast<std::int32_t>(i)));
  }
  if (!g.mean_pooling) t.norm = make_layer_norm(c, "layernorm", g.hidden);
  return t;
}

/// modeling_internvl.py, InternVLVisionAttention.forward.
inline Attended intern_vit_attention(Context& c, const InternVitVision& g, const InternVitLayer& l, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.attention_scope);
  const std::int64_t batch = x.size(0), tokens = x.size(1), head_dim = g.hidden / g.heads;
  Value q = forward(c, l.q, x);
  Value k = forward(c, l.k, x);
  Value v = forward(c, l.v, x);
  if (g.qk_norm) {
    q = forward(c, l.q_norm, q);
    k = forward(c, l.k_norm, k);
  }
  auto split_heads = [&](Value& y) { y = transpose(view(y, {batch, tokens, g.heads, head_dim}), 1, 2); };
  split_heads(q);
  split_heads(k);
  split_heads(v);
  Attended a = attend(c, {.q = q, .k = k, .v = v, .fp32_softmax = false});
  a.out = reshape(a.out, {batch, tokens, g.hidden});
  Value output = forward(c, l.out, a.out);
  a.out = std::move(output);
  return a;
}

/// modeling_internvl.py, InternVLVisionLayer.forward.
inline Value forward(Context& c, const InternVitVision& g, const InternVitLayer& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.scope);
  Value normed = forward(c, l.before, x);
  Attended attended = intern_vit_attention(c, g, l, std::move(normed));  // the weights stay to the end
  Value lambda_1(c.b, l.lambda_1), lambda_2(c.b, l.lambda_2);
  if (c.fused()) {
    Value hidden = pointwise("scale_add", x.dtype(), x, std::move(attended.out), lambda_1);
    Value y = forward(c, l.mlp, forward(c, l.after, hidden));
    return pointwise("scale_add", x.dtype(), std::move(hidden), std::move(y), lambda_2);
  }
  attended.out = mul(lambda_1, attended.out);
  Value hidden = add(attended.out, x);
  Value y = forward(c, l.after, hidden);
  y = forward(c, l.mlp, y);
  y = mul(lambda_2, y);
  y = add(y, hidden);
  return y;
}

/// InternVLVisionEmbeddings.interpolate_pos_encoding: the stored positions, resized bicubically where the picture is
/// not the one they were made for.
inline Value intern_vit_positions(Context& c, const InternVitTower& t, std::int64_t height, std::int64_t width) {
  using namespace eager;
  const InternVitVision& g = *t.config;
  Value stored(c.b, t.positions);
  const std::int64_t rows = height / g.patch_size, cols = width / g.patch_size, old = stored.size(1) - 1;
  if (checked_mul(rows, cols) == old && height == width) return stored;
  const std::int64_t side = g.image_size / g.patch_size;
  Value cls = slice(stored, 1, 0, 1);
  Value patches = slice(stored, 1, 1, old + 1);
  patches = permute(view(patches, {1, side, side, g.hidden}), {0, 3, 1, 2});
  patches = upsample_bicubic2d(patches, rows, cols);
  patches = view(permute(patches, {0, 2, 3, 1}), {1, rows * cols, g.hidden});
  return cat(cls, patches, 1);
}

/// modeling_internvl.py, InternVLVisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, 1 + patches, hidden].
inline Value intern_vit_embeddings(Context& c, const InternVitTower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  Value x;
  {
    InScope patch(c.b, t.patch_scope);
    {
      InScope conv(c.b, t.projection_scope);
      x = conv2d(pixels, Value(c.b, t.patch_weight), Value(c.b, t.patch_bias), t.config->patch_size);
    }
    x = transpose(flatten(x, 2, 3), 1, 2);
  }
  Value cls = expand(Value(c.b, t.cls_token), {pixels.size(0), -1, -1});
  x = cat(cls, x, 1);
  if (t.config->positions) {
    Value positions = intern_vit_positions(c, t, pixels.size(2), pixels.size(3));
    x = add(x, std::move(positions));
  }
  return x;
}

/// modeling_internvl.py, InternVLVisionModel.forward.
inline TowerOutput forward(Context& c, const InternVitTower& t, const TowerInput& input) {
  InScope in(c.b, t.scope);
  TowerOutput out;
  Value embedded = intern_vit_embeddings(c, t, input.pixels);
  if (input.keep_hidden_states) out.hidden_states.push_back(embedded);
  Value x = embedded;
  LayerRepeater repeat(c.b);
  std::size_t layer = 0;
  for (const auto& l : t.layers) {
    x = repeat({0, l.scope, l.q.weight}, x, {}, [&](const Value& h) { return forward(c, *t.config, l, h); });
    x = insert_after_layer(c, layer++, std::move(x), 1);
    if (input.keep_hidden_states) out.hidden_states.push_back(x);
  }
  if (!t.config->mean_pooling) x = forward(c, t.norm, x);
  out.last = x;
  return out;
}

}  // namespace vlmest
