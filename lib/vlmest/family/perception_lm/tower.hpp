// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/perception_lm/pool.hpp>
#include <vlmest/family/perception_lm/tower_blocks.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/block.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

/// A Perception Encoder as transformers loads it: timm's Eva (timm 1.0 models/eva.py) within TimmWrapperModel
/// (transformers 5.17 models/timm_wrapper).
namespace vlmest {

struct EvaTower {
  const EvaVision* config = nullptr;
  ScopeId scope = 0, patch_scope = 0, dropout_scope = 0;
  PatchConv patches;
  TensorId cls_token = none, positions = none, rope = none;
  LayerNorm pre_norm, post_norm;
  std::vector<EvaBlock> blocks;
  EvaPooling pooling;
};

/// In the current scope, in the order of Eva.__init__: sines and cosines of every patch are a buffer of the weights'
/// type.
inline EvaTower make_tower(Context& c, const EvaVision& g) {
  EvaTower t{.config = &g, .scope = c.b.scope()};
  const Module m(c, "timm_model");
  {
    Module p(c, "patch_embed");
    t.patch_scope = p.scope;
    t.patches = make_patch_conv(c, "proj", g, !g.pre_norm);
  }
  if (g.class_token) t.cls_token = parameter(c, "cls_token", {1, 1, g.hidden});
  if (g.positions) t.positions = parameter(c, "pos_embed", {1, g.class_position ? g.tokens() : g.patches(), g.hidden});
  t.dropout_scope = c.b.child("pos_drop");
  if (g.rotates) {
    Module r(c, "rope");
    t.rope = buffer(c, "pos_embed", {g.patches(), checked_mul(g.head_dim(), 2)}, c.dtype());
  }
  if (g.pre_norm) t.pre_norm = make_layer_norm(c, "norm_pre", g.hidden);
  t.blocks = make_layers(g.layers, [&](std::int32_t i) { return make_eva_block(c, g, i); });
  if (g.post_norm) t.post_norm = make_layer_norm(c, "norm", g.hidden);
  t.pooling = make_eva_pooling(c, g);
  return t;
}

/// Eva._pos_embed of patches[N, patches, hidden].
inline Value eva_positions(Context& c, const EvaTower& t, const Value& patches) {
  using namespace eager;
  const EvaVision& g = *t.config;
  Value x = patches;
  const auto add_table = [&] {
    if (g.positions) x = add(x, Value(c.b, t.positions));
  };
  if (!g.class_position) add_table();
  if (g.class_token) {
    Value cls = expand(Value(c.b, t.cls_token), {x.size(0), -1, -1});
    x = cat(std::move(cls), x, 1);
  }
  if (g.class_position) add_table();
  if (!g.position_dropout) return x;
  InScope drop(c.b, t.dropout_scope);
  return dropout(c, std::move(x));
}

/// The gradient of the last layer's result, where that goes on to the projector as it is: the projector works on
/// patches ahead of pictures.
inline Shape eva_gradient_strides(const EvaVision& g, std::int64_t pictures) {
  if (g.class_token || g.post_norm || pictures == 1) return {};
  return {g.hidden, checked_mul(pictures, g.hidden), 1};
}

/// Eva.forward_features and forward_head of pixels[N, channels, S, S], which the wrapper calls past the module, so that
/// what they run themselves counts as the wrapper's. The class of the layers is none that
/// gradient_checkpointing_enable() knows, so that they run once.
inline TowerOutput forward(Context& c, const EvaTower& t, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, t.scope);
  const EvaVision& g = *t.config;
  Value x;
  {
    InScope patch(c.b, t.patch_scope);
    const Value map = forward(c, t.patches, pixels);
    x = patch_sequence(map);
  }
  x = eva_positions(c, t, x);
  if (g.pre_norm) x = forward(c, t.pre_norm, x);
  const Value rope = g.rotates ? Value(c.b, t.rope) : Value();
  LayerRepeater repeat(c.b, false);
  for (std::size_t i = 0; i < t.blocks.size(); ++i) {
    const EvaBlock& b = t.blocks[i];
    LayerRepeater::Layer place{b.drop_1 ? 1 : 0, b.scope, first_parameter(b)};
    place.gradient_strides = eva_gradient_strides(g, x.size(0));
    x = repeat(place, x, {}, [&](const Value& h) {
      return forward(c, g, b, h, rope && c.plan.param_dtype ? to(rope, c.dtype()) : rope);
    });
    x = insert_after_layer(c, i, std::move(x), g.prefix());
  }
  if (g.post_norm) x = forward(c, t.post_norm, x);
  TowerOutput out;
  if (g.pools) out.pooled = forward(c, t.pooling, g, x);
  out.last = std::move(x);
  return out;
}

}  // namespace vlmest
