// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/vision/packed_block.hpp>
#include <vlmest/nn/vision/patch_merger.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// Qwen2-VL's vision transformer with its merger (transformers models/qwen2_vl, Qwen2VisionTransformerPretrainedModel).
/// Defaults: Qwen2VLVisionConfig.
struct Qwen2VlVision {
  std::int64_t hidden = 1280;  ///< embed_dim
  std::int64_t mlp_ratio = 4;
  std::int64_t layers = 32;  ///< depth
  std::int64_t heads = 16;
  std::int64_t patch_size = 14;
  std::int64_t frames = 2;  ///< temporal_patch_size; a still picture fills it with copies of itself
  std::int64_t channels = 3;
  std::int64_t merge = 2;          ///< spatial_merge_size
  std::int64_t out_hidden = 3584;  ///< hidden_size: width after the merger
  Activation activation = Activation::quick_gelu;
};

using Qwen2VlBlock = PackedBlock<LayerNorm, Mlp>;

struct Qwen2VlTower {
  const Qwen2VlVision* config = nullptr;
  ScopeId scope = 0;
  PatchEmbed patch_embed;
  AxialRope rope;
  std::vector<Qwen2VlBlock> blocks;
  PatchMerger<LayerNorm> merger;
};

/// In the order of Qwen2VLVisionBlock.__init__.
inline Qwen2VlBlock make_qwen2_vl_block(Context& c, std::int64_t hidden, std::int64_t inner, Activation activation,
                                        std::int32_t index) {
  Module m(c, "blocks", index);
  Qwen2VlBlock b{.scope = m.scope};
  b.norm1 = make_layer_norm(c, "norm1", hidden);
  b.norm2 = make_layer_norm(c, "norm2", hidden);
  b.attention = make_packed_attention(c, hidden, true, true);
  Module p(c, "mlp");
  b.mlp.scope = p.scope;
  b.mlp.activation = activation;
  b.mlp.fc1 = make_linear(c, "fc1", hidden, inner, true);
  b.mlp.activation_scope = c.b.child("act");
  b.mlp.fc2 = make_linear(c, "fc2", inner, hidden, true);
  return b;
}

inline Qwen2VlTower make_tower(Context& c, const Qwen2VlVision& g) {
  Qwen2VlTower t{.config = &g, .scope = c.b.scope()};
  t.patch_embed = make_patch_embed(c, g.channels, g.frames, g.patch_size, g.hidden, false);
  t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  const std::int64_t inner = checked_mul(g.hidden, g.mlp_ratio);
  t.blocks =
      make_layers(g.layers, [&](std::int32_t i) { return make_qwen2_vl_block(c, g.hidden, inner, g.activation, i); });
  t.merger = make_patch_merger<LayerNorm>(c, g.hidden, g.merge, g.out_hidden, [&](const char* name, std::int64_t n) {
    return make_layer_norm(c, name, n);
  });
  return t;
}

/// modeling_qwen2_vl.py, Qwen2VisionTransformerPretrainedModel.forward: pixels[patches, taps] and grid[N, 3] -> last
/// hidden states[patches, hidden] and merged features[patches / merge^2, out_hidden].
inline TowerOutput forward(Context& c, const Qwen2VlTower& t, const PackedImages& input,
                           std::span<const ImageLayout> images) {
  const Qwen2VlVision& g = *t.config;
  InScope in(c.b, t.scope);
  Value position_ids = vision_position_ids(c, input.grid, images, g.merge);
  const Segments segments = image_segments(c, input.grid, images);
  TowerOutput out;
  out.last = input_embedding(c, forward(c, t.patch_embed, input.pixels));
  const CosSin positions = forward(c, t.rope, position_ids);
  PackedStack stack(c, g.heads, positions);
  for (const auto& b : t.blocks) out.last = stack(b, out.last, segments);
  out.pooled = forward(c, t.merger, out.last);
  return out;
}

}  // namespace vlmest
