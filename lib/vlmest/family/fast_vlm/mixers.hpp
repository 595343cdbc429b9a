// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <vlmest/family/fast_vlm/blocks.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

/// FastViT's two blocks: a mixer of neighbours or attention over the whole map, each with an MLP of convolutions
/// behind it (timm 1.0.29 models/fastvit.py).
namespace vlmest {

/// RepMixer.
struct RepMixer {
  ScopeId scope = 0;
  std::optional<MapConv> merged;
  MobileOneBlock norm, mixer;
  ChannelScale scale;
};
inline RepMixer make_rep_mixer(Context& c, const FastVitVision& g, std::int64_t dim) {
  Module m(c, "token_mixer");
  RepMixer r{.scope = m.scope};
  MobileOneConfig part{.conv = {.in = dim, .out = dim, .side = g.mixer_side, .depthwise = true}, .activates = false};
  if (g.fused) {
    r.merged = make_map_conv(c, "reparam_conv", part.conv, true);
    return r;
  }
  MobileOneConfig norm = part;
  norm.scale = false;
  norm.branches = 0;
  r.norm = make_mobile_one(c, "norm", norm, false);
  r.mixer = make_mobile_one(c, "mixer", part, false);
  r.scale = make_channel_scale(c, "layer_scale", dim);
  return r;
}
inline Value forward(Context& c, const RepMixer& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.scope);
  if (l.merged) return forward(c, *l.merged, x);
  Value mixed = forward(c, l.mixer, x), normed = forward(c, l.norm, x);
  Value change = sub(std::move(mixed), std::move(normed));
  change = forward(c, l.scale, change);
  return add(x, std::move(change));
}

/// ConvMlp: neighbours of each channel, then two layers at each position.
struct ConvMlp {
  ScopeId scope = 0, act_scope = 0;
  ConvNorm conv;
  MapConv first, second;
};
inline ConvMlp make_conv_mlp(Context& c, const FastVitStageConfig& s) {
  Module m(c, "mlp");
  ConvMlp r{.scope = m.scope};
  r.conv = make_conv_norm(c, "conv", {.in = s.dim, .out = s.dim, .side = 7, .depthwise = true});
  r.first = make_map_conv(c, "fc1", {.in = s.dim, .out = s.inner}, true);
  r.act_scope = c.b.child("act");
  r.second = make_map_conv(c, "fc2", {.in = s.inner, .out = s.dim}, true);
  return r;
}
inline Value forward(Context& c, const ConvMlp& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = forward(c, l.conv, arg);
  x = forward(c, l.first, x);
  x = gelu(c, l.act_scope, x);
  x = forward(c, l.second, x);
  return x;
}

/// Attention over all positions, in heads of 32 channels.
struct MapAttention {
  ScopeId scope = 0;
  Linear qkv, proj;
  static constexpr std::int64_t head_dim = 32;
};
inline Value forward(Context& c, const MapAttention& a, const Value& arg) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t n = arg.size(0), dim = arg.size(1), rows = arg.size(2), cols = arg.size(3);
  const std::int64_t positions = checked_mul(rows, cols), heads = dim / MapAttention::head_dim;
  Value x = transpose(flatten(arg, 2, 3), 1, 2);
  const Value qkv =
      permute(reshape(forward(c, a.qkv, x), {n, positions, 3, heads, MapAttention::head_dim}), {2, 0, 3, 1, 4});
  const std::vector<Value> parts = unbind(qkv, 0);
  x = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, false);
  x = reshape(transpose(x, 1, 2), {n, positions, dim});
  x = forward(c, a.proj, x);
  return reshape(transpose(x, 1, 2), {n, dim, rows, cols});
}

/// The norm in front of attention: LayerNorm2d over each position's channels, or BatchNorm2d.
struct MapAttentionNorm {
  std::optional<LayerNorm> layer;
  std::optional<BatchNorm> batch;
};
inline Value forward(Context& c, const MapAttentionNorm& n, const Value& x) {
  using namespace eager;
  if (n.batch) return forward(c, *n.batch, x);
  InScope in(c.b, n.layer->scope);
  const Value rows = permute(x, {0, 2, 3, 1});
  return permute(layer_norm(rows, Value(c.b, n.layer->weight), Value(c.b, n.layer->bias)), {0, 3, 1, 2});
}

/// RepMixerBlock or AttentionBlock.
struct FastVitBlock {
  ScopeId scope = 0;
  TensorId first = none;  ///< its first parameter
  std::optional<RepMixer> mixer;
  MapAttentionNorm norm;
  MapAttention attention;
  ChannelScale attention_scale, scale;
  ConvMlp mlp;
};
inline FastVitBlock make_fastvit_block(Context& c, const FastVitVision& g, const FastVitStageConfig& s,
                                       std::int32_t index) {
  const InScope block(c.b, c.b.child("", index));
  FastVitBlock r{.scope = c.b.scope(), .first = static_cast<TensorId>(c.b.graph.tensors.size())};
  if (!s.attends) {
    r.mixer = make_rep_mixer(c, g, s.dim);
  } else {
    if (g.layer_norm)
      r.norm.layer = make_layer_norm(c, "norm", s.dim);
    else
      r.norm.batch = make_batch_norm(c, "norm", s.dim);
    Module m(c, "token_mixer");
    r.attention.scope = m.scope;
    r.attention.qkv = make_linear(c, "qkv", s.dim, checked_mul(s.dim, 3), false);
    r.attention.proj = make_linear(c, "proj", s.dim, s.dim, true);
  }
  if (s.attends) r.attention_scale = make_channel_scale(c, "layer_scale_1", s.dim);
  r.mlp = make_conv_mlp(c, s);
  r.scale = make_channel_scale(c, s.attends ? "layer_scale_2" : "layer_scale", s.dim);
  return r;
}
inline Value forward(Context& c, const FastVitBlock& l, const Value& arg) {
  using namespace eager;
  InScope in(c.b, l.scope);
  Value x = arg;
  if (l.mixer) {
    x = forward(c, *l.mixer, x);
  } else {
    Value mixed = forward(c, l.norm, x);
    mixed = forward(c, l.attention, mixed);
    mixed = forward(c, l.attention_scale, mixed);
    x = add(x, std::move(mixed));
  }
  Value y = forward(c, l.mlp, x);
  y = forward(c, l.scale, y);
  x = add(x, std::move(y));
  return x;
}

}  // namespace vlmest
