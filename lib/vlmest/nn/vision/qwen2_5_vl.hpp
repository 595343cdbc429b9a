// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/vision/packed_block.hpp>
#include <vlmest/nn/vision/packed_windows.hpp>
#include <vlmest/nn/vision/patch_merger.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// Qwen2.5-VL's vision transformer with its merger (transformers models/qwen2_5_vl,
/// Qwen2_5_VisionTransformerPretrainedModel): attention inside windows in all layers but a few; and EXAONE 4.5's
/// (models/exaone4_5, Exaone4_5_VisionModel), whose query heads share keys and values. Defaults:
/// Qwen2_5_VLVisionConfig.
struct Qwen2_5VlVision {
  std::int64_t hidden = 3584;
  std::int64_t intermediate = 3420;
  std::int64_t layers = 32;  ///< depth
  std::int64_t heads = 16;
  std::int64_t kv_heads = 0;  ///< num_key_value_heads, of EXAONE 4.5 alone; 0: none
  std::int64_t patch_size = 14;
  std::int64_t frames = 2;  ///< temporal_patch_size
  std::int64_t channels = 3;
  std::int64_t merge = 2;                                   ///< spatial_merge_size
  std::int64_t window_size = 112;                           ///< pixels along a window's side
  std::vector<std::int64_t> full_attention{7, 15, 23, 31};  ///< fullatt_block_indexes
  std::int64_t out_hidden = 3584;
  Activation activation = Activation::silu;
  bool apart = false;  ///< Qwen2.5-Omni: a projection each for queries, keys and values
};

using Qwen2_5VlBlock = PackedBlock<RmsNorm, GatedMlp>;

struct Qwen2_5VlTower {
  const Qwen2_5VlVision* config = nullptr;
  ScopeId scope = 0;
  PatchEmbed patch_embed;
  AxialRope rope;
  std::vector<Qwen2_5VlBlock> blocks;
  PatchMerger<RmsNorm> merger;
};

/// In the order of Qwen2_5_VLVisionBlock.__init__ and Exaone4_5_VisionBlock.__init__.
inline Qwen2_5VlBlock make_qwen2_5_vl_block(Context& c, const Qwen2_5VlVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  Qwen2_5VlBlock b{.scope = m.scope};
  b.norm1 = make_rms_norm(c, "norm1", g.hidden);
  b.norm2 = make_rms_norm(c, "norm2", g.hidden);
  b.attention = g.kv_heads > 0 ? make_grouped_packed_attention(c, g.hidden, g.heads, g.kv_heads)
                : g.apart      ? make_apart_attention(c, g.hidden)
                               : make_packed_attention(c, g.hidden, true, true);
  b.mlp = make_gated_mlp(c, "mlp", g.hidden, g.intermediate, true, g.activation);
  return b;
}

inline Qwen2_5VlTower make_tower(Context& c, const Qwen2_5VlVision& g) {
  Qwen2_5VlTower t{.config = &g, .scope = c.b.scope()};
  t.patch_embed = make_patch_embed(c, g.channels, g.frames, g.patch_size, g.hidden, false);
  t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  t.blocks = make_layers(g.layers, [&](std::int32_t i) { return make_qwen2_5_vl_block(c, g, i); });
  t.merger = make_patch_merger<RmsNorm>(c, g.hidden, g.merge, g.out_hidden,
                                        [&](const char* name, std::int64_t n) { return make_rms_norm(c, name, n); });
  return t;
}

/// modeling_qwen2_5_vl.py, permute_input_for_window_attn: rows of merge x merge patches in the order of the windows.
inline Value window_order(const Value& x, std::int64_t merged_patch) {
  using namespace eager;
  const std::int64_t n = x.size(0) / merged_patch;
  Value y = reshape(x, {n, merged_patch, -1});
  y = host_index(y, {n});
  return reshape(y, {x.size(0), -1});
}

/// modeling_qwen2_5_vl.py, Qwen2_5_VisionTransformerPretrainedModel.forward.
inline TowerOutput forward(Context& c, const Qwen2_5VlTower& t, const PackedImages& input,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  const Qwen2_5VlVision& g = *t.config;
  InScope in(c.b, t.scope);
  const std::int64_t unit = g.merge * g.merge;
  Value position_ids = vision_position_ids(c, input.grid, images, g.merge);
  const Segments whole = image_segments(c, input.grid, images);
  const Segments windows = window_segments(c, {g.window_size, g.patch_size, g.merge}, input.grid, images);
  check_longest(c, windows);
  TowerOutput out;
  out.last = input_embedding(c, forward(c, t.patch_embed, input.pixels));
  out.last = window_order(out.last, unit);
  CosSin positions = forward(c, t.rope, position_ids);
  {
    // A generator makes the tuple: the unpermuted pair is bound until it is complete.
    Value cos = window_order(positions.cos, unit);
    Value sin = window_order(positions.sin, unit);
    positions = {std::move(cos), std::move(sin)};
  }
  PackedStack stack(c, g.heads, positions);
  for (std::int64_t i = 0; i < g.layers; ++i) {
    const bool full = std::find(g.full_attention.begin(), g.full_attention.end(), i) != g.full_attention.end();
    out.last = stack(t.blocks[static_cast<std::size_t>(i)], out.last, full ? whole : windows, full ? 1 : 0);
  }
  Value merged = forward(c, t.merger, out.last);
  merged = host_index(merged, {merged.size(0)});
  out.pooled = std::move(merged);
  return out;
}

}  // namespace vlmest
