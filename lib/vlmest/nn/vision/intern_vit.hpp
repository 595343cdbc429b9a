// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/projections.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_layers.hpp>

namespace vlmest {

/// InternViT (transformers models/internvl, InternVLVisionModel): a class token, layers whose two branches are scaled
/// per channel, layer norms in the 300M tower, root-mean-square norms and normed queries and keys in the 6B one.
/// Qianfan-OCR's tower (models/qianfan_ocr, QianfanOCRVisionModel) is the same with stochastic depth.
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
  bool encoder = true;       ///< the layers stand in an encoder, else in the tower itself, behind its norm
  bool drop_path = false;    ///< drop_path_rate is above zero: in training, of every layer but the first
};

/// One of the two norms that norm_type chooses between.
struct InternVitNorm {
  bool rms = false;
  LayerNorm layer;
  RmsNorm root;
};

struct InternVitLayer {
  ScopeId scope = 0;
  Projections attention;
  RmsNorm q_norm, k_norm;
  Mlp mlp;
  InternVitNorm before, after;
  TensorId lambda_1 = none, lambda_2 = none;
  std::optional<ScopeId> drop_1, drop_2;
};

struct InternVitTower {
  const InternVitVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0, patch_scope = 0;
  TensorId cls_token = none, positions = none;
  PatchConv patches;
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

/// The order of InternVLVisionLayer.__init__ and InternVLVisionAttention.__init__. Rates of stochastic depth grow from
/// nothing in the first layer.
inline InternVitLayer make_intern_vit_layer(Context& c, const InternVitVision& g, std::int32_t index) {
  Module m(c, g.encoder ? "layer" : "layers", index);
  InternVitLayer l{.scope = m.scope};
  {
    Module a(c, "attention");
    l.attention =
        make_projections(c, {.hidden = g.hidden, .qkv_bias = g.qkv_bias, .out_bias = true, .out = "projection_layer"});
    if (g.qk_norm) {
      l.q_norm = make_rms_norm(c, "q_norm", g.hidden);
      l.k_norm = make_rms_norm(c, "k_norm", g.hidden);
    }
  }
  l.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
  l.before = make_intern_vit_norm(c, "layernorm_before", g);
  l.after = make_intern_vit_norm(c, "layernorm_after", g);
  l.lambda_1 = parameter(c, "lambda_1", {g.hidden});
  l.lambda_2 = parameter(c, "lambda_2", {g.hidden});
  if (g.drop_path && index > 0) {
    l.drop_1 = c.b.child("drop_path1");
    l.drop_2 = c.b.child("drop_path2");
  }
  return l;
}

/// The first parameter that the layer declared.
inline TensorId first_parameter(const InternVitLayer& l) { return l.attention.first(); }
inline int kind_of(const InternVitLayer& l) { return l.drop_1 ? 1 : 0; }

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
      t.patches = make_patch_conv(c, "projection", g, true);
    }
    if (g.positions)
      t.positions = parameter(c, "position_embeddings", {1, checked_add(checked_mul(side, side), 1), g.hidden});
  }
  const auto layers = [&] {
    t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_intern_vit_layer(c, g, i); });
  };
  const auto norm = [&] {
    if (!g.mean_pooling) t.norm = make_layer_norm(c, "layernorm", g.hidden);
  };
  if (g.encoder) {
    {
      Module e(c, "encoder");
      layers();
    }
    norm();
  } else {
    norm();
    layers();
  }
  return t;
}

/// modeling_internvl.py, InternVLVisionAttention.forward.
inline Attended intern_vit_attention(Context& c, const InternVitVision& g, const InternVitLayer& l, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, l.attention.scope);
  Qkv y = project(c, l.attention, x);
  if (g.qk_norm) {
    y.q = forward(c, l.q_norm, y.q);
    y.k = forward(c, l.k_norm, y.k);
  }
  split_heads(y, g.hidden / g.heads);
  Attended a = stacks::attend(c, {.q = y.q, .k = y.k, .v = y.v, .fp32_softmax = false});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_internvl.py, InternVLVisionLayer.forward.
inline Value forward(Context& c, const InternVitVision& g, const InternVitLayer& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.scope);
  Value normed = forward(c, l.before, x);
  Attended attended = intern_vit_attention(c, g, l, std::move(normed));  // the weights stay to the end
  Value lambda_1(c.b, l.lambda_1), lambda_2(c.b, l.lambda_2);
  if (c.stack().fuses_scaled_sums && !(l.drop_1 && c.plan.dropout)) {
    Value hidden = fused_scale("scale_add", true, x, std::move(attended.out), lambda_1);
    Value y = forward(c, l.mlp, forward(c, l.after, hidden));
    return fused_scale("scale_add", true, std::move(hidden), std::move(y), lambda_2);
  }
  attended.out = mul(lambda_1, attended.out);
  if (l.drop_1) attended.out = drop_path(c, *l.drop_1, attended.out);
  Value hidden = add(attended.out, x);
  if (!g.encoder) attended.out.reset();  // QianfanOCRVisionLayer.forward has one variable for both
  Value y = forward(c, l.after, hidden);
  y = forward(c, l.mlp, y);
  y = mul(lambda_2, y);
  y = add(l.drop_2 ? drop_path(c, *l.drop_2, y) : y, hidden);
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
    x = input_embedding(c, patch_sequence(forward(c, t.patches, pixels)));
  }
  Value cls = expand(Value(c.b, t.cls_token), {pixels.size(0), -1, -1});
  x = cat(cls, x, 1);
  if (t.config->positions) {
    Value positions = intern_vit_positions(c, t, pixels.size(2), pixels.size(3));
    x = add(x, std::move(positions));
  }
  return x;
}

/// modeling_internvl.py, InternVLVisionModel.forward, which keeps the embeddings while its encoder runs;
/// modeling_qianfan_ocr.py, QianfanOCRVisionModel.forward.
inline TowerOutput forward(Context& c, const InternVitTower& t, const TowerInput& input) {
  InScope in(c.b, t.scope);
  TowerOutput out;
  Value embedded = intern_vit_embeddings(c, t, input.pixels);
  Value first = embedded;
  if (!t.config->encoder) embedded.reset();
  Value x = run_layers(c, t.layers, std::move(first), 1, input, out,
                       [&](const InternVitLayer& l, const Value& h) { return forward(c, *t.config, l, h); });
  if (!t.config->mean_pooling) x = forward(c, t.norm, x);
  out.last = x;
  return out;
}

}  // namespace vlmest
