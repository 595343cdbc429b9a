// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/attention_args.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/attention.hpp>
#include <vlmest/nn/vision/conv.hpp>
#include <vlmest/nn/vision/decomposed_positions.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/sam_windows.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// The image encoder of Segment Anything (Kirillov et al., arXiv:2304.02643; transformers models/sam, SamVisionEncoder,
/// and its copies in models/got_ocr2 and models/deepseek_ocr2): a ViT over a map of patches whose layers attend inside
/// windows, a few of them over the whole map, with biases of relative positions, and a neck of two convolutions.
struct SamVision {
  std::int64_t hidden = 768;
  std::int64_t out = 256;  ///< output_channels
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t mlp = 3072;
  std::int64_t image_size = 1024;
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  std::int64_t window = 14;                              ///< 0: every layer attends over the whole map
  std::vector<std::int64_t> global_layers{2, 5, 8, 11};  ///< global_attn_indexes
  Activation activation = Activation::gelu;
  bool qkv_bias = true;
  bool absolute = true;            ///< use_abs_pos
  bool relative = true;            ///< use_rel_pos
  bool attention_dropout = false;  ///< in training mode, of eager attention's weights
  bool has_sdpa = true;            ///< the class has a version for torch's fused attention
  bool resamples = false;          ///< takes other sizes than image_size, for which it resamples its positions
};

struct SamAttention {
  ScopeId scope = 0;
  Linear qkv, out;
  TensorId rows = none, cols = none;  ///< rel_pos_h and rel_pos_w
};

struct SamLayer {
  ScopeId scope = 0;
  std::int64_t window = 0;
  LayerNorm norm1, norm2;
  SamAttention attention;
  Mlp mlp;
};

/// SamVisionNeck.
struct SamNeck {
  ScopeId scope = 0;
  Conv conv1, conv2;
  LayerNorm norm1, norm2;
};

struct SamTower {
  const SamVision* config = nullptr;
  ScopeId scope = 0, embed_scope = 0;
  PatchConv patches;
  TensorId positions = none;
  std::vector<SamLayer> layers;
  SamNeck neck;
};

/// SamVisionAttention.__init__ of a map or a window of side * side patches.
inline SamAttention make_sam_attention(Context& c, const SamVision& g, std::int64_t side) {
  Module m(c, "attn");
  SamAttention a{.scope = m.scope};
  a.qkv = make_linear(c, "qkv", g.hidden, checked_mul(g.hidden, 3), g.qkv_bias);
  a.out = make_linear(c, "proj", g.hidden, g.hidden, true);
  if (!g.relative) return a;
  a.rows = parameter(c, "rel_pos_h", {2 * side - 1, g.hidden / g.heads});
  a.cols = parameter(c, "rel_pos_w", {2 * side - 1, g.hidden / g.heads});
  return a;
}

inline SamLayer make_sam_layer(Context& c, const SamVision& g, std::int32_t index) {
  Module m(c, "layers", index);
  const bool whole = std::find(g.global_layers.begin(), g.global_layers.end(), index) != g.global_layers.end();
  SamLayer l{.scope = m.scope, .window = whole ? 0 : g.window};
  l.norm1 = make_layer_norm(c, "layer_norm1", g.hidden);
  l.attention = make_sam_attention(c, g, l.window > 0 ? l.window : g.image_size / g.patch_size);
  l.norm2 = make_layer_norm(c, "layer_norm2", g.hidden);
  Module f(c, "mlp");
  l.mlp = {.scope = f.scope, .activation = g.activation};
  l.mlp.fc1 = make_linear(c, "lin1", g.hidden, g.mlp, true);
  l.mlp.fc2 = make_linear(c, "lin2", g.mlp, g.hidden, true);
  l.mlp.activation_scope = c.b.child("act");
  return l;
}

/// In the current scope.
inline SamNeck make_sam_neck(Context& c, const SamVision& g) {
  SamNeck n{.scope = c.b.scope()};
  n.conv1 = make_conv(c, "conv1", {.in = g.hidden, .out = g.out, .side = 1, .padding = 0});
  n.norm1 = make_layer_norm(c, "layer_norm1", g.out);
  n.conv2 = make_conv(c, "conv2", {.in = g.out, .out = g.out});
  n.norm2 = make_layer_norm(c, "layer_norm2", g.out);
  return n;
}

/// SamVisionEncoder.__init__, in the current scope.
inline SamTower make_tower(Context& c, const SamVision& g) {
  SamTower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "patch_embed");
    t.embed_scope = e.scope;
    t.patches = make_patch_conv(c, "projection", g, true);
  }
  const std::int64_t side = g.image_size / g.patch_size;
  if (g.absolute) t.positions = parameter(c, "pos_embed", {1, side, side, g.hidden});
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_sam_layer(c, g, i); });
  Module n(c, "neck");
  t.neck = make_sam_neck(c, g);
  return t;
}

/// SamVisionAttention.forward and SamVisionSdpaAttention.forward: [N, H, W, C] of a map or of windows. The biases of
/// all pairs are a variable of the function, as is their sum with the scores.
inline Attended forward(Context& c, const SamAttention& a, const SamVision& g, const Value& x) {
  using namespace eager;
  InScope in(c.b, a.scope);
  const std::int64_t n = x.size(0), rows = x.size(1), cols = x.size(2), tokens = checked_mul(rows, cols);
  const std::int64_t head_dim = g.hidden / g.heads, stack = checked_mul(n, g.heads);
  const Value qkv = permute(reshape(forward(c, a.qkv, x), {n, tokens, 3, g.heads, head_dim}), {2, 0, 3, 1, 4});
  Value q, k, v;
  {
    std::vector<Value> parts = unbind(reshape(qkv, {3, stack, tokens, head_dim}), 0);
    q = std::move(parts[0]);
    k = std::move(parts[1]);
    v = std::move(parts[2]);
  }
  const bool sdpa = g.has_sdpa && c.plan.attention == AttentionKind::sdpa;
  Value weights, positions, out;
  if (!sdpa) weights = matmul(mul_scalar(q), transpose(k, -2, -1));
  if (g.relative) {
    positions = decomposed_positions(c, q, a.rows, a.cols, rows, cols);
    positions = reshape(positions, sdpa ? Shape{n, g.heads, tokens, tokens} : Shape{stack, tokens, tokens});
  }
  if (sdpa) {
    for (Value* part : {&q, &k, &v}) *part = view(*part, {n, g.heads, tokens, head_dim});
    out = scaled_dot_product_attention(q, k, v, positions, false);
    out = view(std::move(out), {n, g.heads, rows, cols, head_dim});
    out = reshape(permute(out, {0, 2, 3, 1, 4}), {n, rows, cols, g.hidden});
    return {forward(c, a.out, out), {}};
  }
  if (positions) weights = add(weights, positions);
  weights = to(softmax(weights, DType::fp32), q.dtype());
  const Value probabilities = g.attention_dropout ? dropout(c, weights) : weights;
  out = reshape(matmul(probabilities, v), {n, g.heads, rows, cols, head_dim});
  out = reshape(permute(out, {0, 2, 3, 1, 4}), {n, rows, cols, g.hidden});
  out = forward(c, a.out, out);
  return {out, weights};
}

/// SamVisionLayer.forward: eager attention's weights stay to its end.
inline Value forward(Context& c, const SamLayer& l, const SamVision& g, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, l.scope);
  const Value residual = x;
  x = forward(c, l.norm1, x);
  const std::int64_t height = x.size(1), width = x.size(2);
  if (l.window > 0) x = window_partition(x, l.window);
  Attended attended = forward(c, l.attention, g, x);
  x = std::move(attended.out);
  if (l.window > 0) x = window_unpartition(x, l.window, height, width);
  x = add(residual, x);
  const Value normed = forward(c, l.norm2, x);
  Value inner = forward(c, l.mlp, normed);
  x = add(x, std::move(inner));
  return x;
}

/// SamLayerNorm over the channels of x[N, C, H, W], which then come last.
inline Value norm_channels(Context& c, const LayerNorm& n, const Value& arg) {
  using namespace eager;
  Value x = permute(arg, {0, 2, 3, 1});
  x = forward(c, n, x);
  return permute(std::move(x), {0, 3, 1, 2});
}

/// SamVisionNeck.forward: [N, H, W, hidden] -> [N, out, H, W].
inline Value forward(Context& c, const SamNeck& n, const Value& states) {
  InScope in(c.b, n.scope);
  Value x = eager::permute(states, {0, 3, 1, 2});
  x = forward(c, n.conv1, x);
  x = norm_channels(c, n.norm1, x);
  x = forward(c, n.conv2, x);
  x = norm_channels(c, n.norm2, x);
  return x;
}

/// pos_embed, or what DeepseekOcr2SamVisionEncoder.interpolate_pos_encoding makes of it for a map of another size.
inline Value sam_positions(Context& c, const SamTower& t, std::int64_t rows, std::int64_t cols) {
  using namespace eager;
  Value table(c.b, t.positions);
  if (!t.config->resamples || (table.size(1) == rows && table.size(2) == cols)) return table;
  const DType type = table.dtype();
  Value x = permute(std::move(table), {0, 3, 1, 2});
  x = to(upsample_bicubic2d_aa(to(x, DType::fp32), rows, cols), type);
  x = permute(std::move(x), {0, 2, 3, 1});
  return x;
}

/// Throws Error for kernels that SAM's tower has none of.
inline void check_sam_runtime(const Context& c) {
  if (!c.stack().adds_position_biases)
    throw Error("plan.runtime", "kernels that add SAM's position biases to fused attention are not modelled",
                "leave plan.runtime out");
}

/// Throws Error for attention that the classes have no version for.
inline void check_sam_attention(const Context& c) {
  check_sam_runtime(c);
  if (c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "SAM's tower has no version for FlashAttention-2", "give plan.attention=sdpa");
}

/// SamVisionEncoder.forward, whose maps take no blocks of a description: pixels[N, 3, H, W] -> [N, out, H / patch, W /
/// patch].
inline TowerOutput forward(Context& c, const SamTower& t, const TowerInput& input) {
  using namespace eager;
  check_sam_attention(c);
  InScope in(c.b, t.scope);
  TowerOutput out;
  Value x;
  {
    InScope embed(c.b, t.embed_scope);
    x = input_embedding(c, permute(forward(c, t.patches, input.pixels), {0, 2, 3, 1}));
  }
  if (t.positions != none) {
    Value positions = sam_positions(c, t, x.size(1), x.size(2));
    x = add(x, std::move(positions));
  }
  LayerRepeater repeat(c.b);
  if (input.keep_hidden_states) out.hidden_states.push_back(x);
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    const SamLayer& l = t.layers[i];
    LayerRepeater::Layer place{l.window > 0 ? 1 : 0, l.scope, l.norm1.weight};
    place.gradient_as_result = true;  // the neck's convolution takes the map apart by channels
    place.input_read_elsewhere = input.reads_input_of(i, t.layers.size());
    x = repeat(place, x, {}, [&](const Value& h) { return forward(c, l, *t.config, h); });
    if (input.keep_hidden_states) out.hidden_states.push_back(x);
  }
  x = forward(c, t.neck, x);
  out.last = std::move(x);
  return out;
}

}  // namespace vlmest
