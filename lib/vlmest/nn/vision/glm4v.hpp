// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/vision/packed_block.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// GLM-4.1V's vision transformer with its merger (transformers models/glm4v, Glm4vVisionModel), and GLM-OCR's, which
/// has norms of queries and keys instead of a table of positions (models/glm_ocr, GlmOcrVisionModel). Defaults:
/// Glm4vVisionConfig.
struct Glm4vVision {
  std::int64_t hidden = 1536;
  std::int64_t intermediate = 4096;  ///< of the blocks' MLPs
  std::int64_t merger = 13696;       ///< of the merger's
  std::int64_t layers = 24;          ///< depth
  std::int64_t heads = 12;
  std::int64_t image_size = 336;  ///< side of the table of positions, in pixels
  std::int64_t patch_size = 14;
  std::int64_t frames = 2;  ///< temporal_patch_size
  std::int64_t channels = 3;
  std::int64_t merge = 2;  ///< spatial_merge_size
  std::int64_t out_hidden = 4096;
  bool attention_bias = false;  ///< of queries, keys and values
  bool block_bias = false;      ///< of the attention's output and of the MLP
  bool qk_norm = false;
  bool position_table = true;  ///< and a norm before it
  Activation activation = Activation::silu;
};

using Glm4vBlock = PackedBlock<RmsNorm, GatedMlp>;

/// Linear, norm and GELU, then a gated MLP.
struct Glm4vMerger {
  ScopeId scope = 0, act1_scope = 0;
  Linear proj;
  LayerNorm norm;
  GatedMlp mlp;
};

struct Glm4vTower {
  const Glm4vVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0, downsample_scope = 0;
  TensorId position_weight = none, downsample_weight = none, downsample_bias = none;
  PatchEmbed patch_embed;
  AxialRope rope;
  std::vector<Glm4vBlock> blocks;
  Glm4vMerger merger;
  RmsNorm post_conv_norm;
  RmsNorm post_norm;
};

/// In the order of Glm4vVisionBlock.__init__.
inline Glm4vBlock make_glm4v_block(Context& c, const Glm4vVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  Glm4vBlock b{.scope = m.scope};
  b.norm1 = make_rms_norm(c, "norm1", g.hidden);
  b.norm2 = make_rms_norm(c, "norm2", g.hidden);
  b.attention = make_packed_attention(c, g.hidden, g.attention_bias, g.block_bias, g.qk_norm ? g.hidden / g.heads : 0);
  b.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, g.block_bias, g.activation);
  return b;
}

inline Glm4vMerger make_glm4v_merger(Context& c, const Glm4vVision& g) {
  Module m(c, "merger");
  Glm4vMerger r{.scope = m.scope};
  r.proj = make_linear(c, "proj", g.out_hidden, g.out_hidden, false);
  r.norm = make_layer_norm(c, "post_projection_norm", g.out_hidden);
  r.mlp = {.scope = m.scope, .activation = g.activation};
  r.mlp.gate = make_linear(c, "gate_proj", g.out_hidden, g.merger, false);
  r.mlp.up = make_linear(c, "up_proj", g.out_hidden, g.merger, false);
  r.mlp.down = make_linear(c, "down_proj", g.merger, g.out_hidden, false);
  r.act1_scope = c.b.child("act1");
  r.mlp.activation_scope = c.b.child("act_fn");
  return r;
}

/// In the order of Glm4vVisionModel.__init__ and GlmOcrVisionModel.__init__.
inline Glm4vTower make_tower(Context& c, const Glm4vVision& g) {
  Glm4vTower t{.config = &g, .scope = c.b.scope()};
  if (g.position_table) {
    const std::int64_t side = g.image_size / g.patch_size;
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.position_weight = make_embedding(c, "position_embedding", checked_mul(side, side), g.hidden).weight;
  }
  t.patch_embed = make_patch_embed(c, g.channels, g.frames, g.patch_size, g.hidden, true);
  t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  t.blocks = make_layers(g.layers, [&](std::int32_t i) { return make_glm4v_block(c, g, i); });
  t.merger = make_glm4v_merger(c, g);
  if (g.position_table) t.post_conv_norm = make_rms_norm(c, "post_conv_layernorm", g.hidden);
  {
    Module d(c, "downsample");
    t.downsample_scope = d.scope;
    t.downsample_weight = parameter(c, "weight", {g.out_hidden, g.hidden, g.merge, g.merge});
    t.downsample_bias = parameter(c, "bias", {g.out_hidden});
  }
  t.post_norm = make_rms_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// modeling_glm4v.py, Glm4vVisionEmbeddings.forward: the table of positions, in fp32, is sampled by cubic interpolation
/// where each patch lies in its image. x[patches, hidden], lengths int32[N], grid[N, 3], positions[patches, 2].
inline Value glm4v_embeddings(Context& c, const Glm4vTower& t, const Value& x, const Value& lengths, const Value& grid,
                              const Value& positions) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  const std::int64_t side = t.config->image_size / t.config->patch_size, patches = x.size(0);
  Value weight(c.b, t.position_weight);
  const DType type = weight.dtype();
  Value table = to(unsqueeze(permute(view(weight, {side, side, t.config->hidden}), {2, 0, 1}), 0), DType::fp32);
  Value tokens = arange(c.b, patches);
  Value ends = unsqueeze(cumsum(lengths, DType::int64), 1);
  Value passed = compare("ge.Tensor", unsqueeze(tokens, 0), std::move(ends));
  Value image = sum(std::move(passed), 0, false);
  const auto extent = [&](std::int64_t axis) {
    return to(gather_rows("index.Tensor", select(grid, 1, axis), image, {patches}), DType::fp32);
  };
  Value rows = extent(1);
  Value cols = extent(2);
  const auto normalised = [&](std::int64_t axis, const Value& of) {
    return sub_scalar(mul_scalar(div(pointwise("add.Tensor", DType::fp32, select(positions, 1, axis)), of)));
  };
  Value across = normalised(1, cols);
  Value down = normalised(0, rows);
  std::array<Value, 2> pair{across, down};
  Value at = unsqueeze(unsqueeze(stack(pair, -1), 0), 2);
  Value sampled = grid_sampler_2d(table, at);
  Value adapted_fp32 = permute(squeeze(squeeze(sampled, 0), -1), {1, 0});
  Value adapted = to(adapted_fp32, type);
  return add(x, adapted);
}

/// modeling_glm4v.py, Glm4vVisionPatchMerger.forward.
inline Value forward(Context& c, const Glm4vMerger& m, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  x = forward(c, m.proj, x);
  Value normed = forward(c, m.norm, x);
  {
    InScope a(c.b, m.act1_scope);
    x = eager::unary(eager::functions::gelu, std::move(normed));
  }
  return forward(c, m.mlp, x);
}

/// modeling_glm4v.py, Glm4vVisionModel.forward, and modeling_glm_ocr.py, GlmOcrVisionModel.forward: pixels[patches,
/// taps] and grid[N, 3] -> downsampled states and merged features, both [patches / merge^2, out_hidden].
inline TowerOutput forward(Context& c, const Glm4vTower& t, const PackedImages& input,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  const Glm4vVision& g = *t.config;
  InScope in(c.b, t.scope);
  Value position_ids = vision_position_ids(c, input.grid, images, g.merge);
  const Segments segments = image_segments(c, input.grid, images);
  Value x = forward(c, t.patch_embed, input.pixels);
  if (g.position_table) x = forward(c, t.post_conv_norm, x);
  const CosSin positions = forward(c, t.rope, position_ids);
  Value lengths;
  if (g.position_table) {
    lengths = segment_lengths(segments);
    x = glm4v_embeddings(c, t, x, lengths, input.grid, position_ids);
  }
  PackedStack stack(c, g.heads, positions);
  for (const auto& b : t.blocks) x = stack(b, x, segments);
  x = forward(c, t.post_norm, x);
  x = permute(view(x, {-1, g.merge, g.merge, g.hidden}), {0, 3, 1, 2});
  {
    InScope d(c.b, t.downsample_scope);
    Value weight(c.b, t.downsample_weight), bias(c.b, t.downsample_bias);
    x = conv2d_channels_last(x, std::move(weight), std::move(bias));
  }
  x = view(x, {-1, g.out_hidden});
  TowerOutput out;
  out.last = std::move(x);
  out.pooled = forward(c, t.merger, out.last);
  return out;
}

}  // namespace vlmest
