// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/nn/vision/qwen2_vl.hpp>

namespace vlmest {

/// ERNIE 4.5 VL's vision transformer (transformers models/ernie4_5_vl_moe,
/// Ernie4_5_VLMoeVisionTransformerPretrainedModel): Qwen2-VL's layers over single frames, patches embedded by a linear
/// module, a norm behind them. Defaults: Ernie4_5_VLMoeVisionConfig.
struct Ernie4_5Vision {
  std::int64_t hidden = 1280;
  std::int64_t intermediate = 5120;
  std::int64_t layers = 32;  ///< depth
  std::int64_t heads = 16;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t merge = 2;  ///< spatial_merge_size
  Activation activation = Activation::quick_gelu;

  static constexpr std::int64_t frames = 1;  ///< of a patch
};

struct Ernie4_5Tower {
  const Ernie4_5Vision* config = nullptr;
  ScopeId scope = 0, embed_scope = 0;
  Linear patch_embed;
  AxialRope rope;
  std::vector<Qwen2VlBlock> blocks;
  LayerNorm norm;
};

/// In the order of Ernie4_5_VLMoeVisionTransformerPretrainedModel.__init__.
inline Ernie4_5Tower make_tower(Context& c, const Ernie4_5Vision& g) {
  Ernie4_5Tower t{.config = &g, .scope = c.b.scope()};
  {
    Module m(c, "patch_embed");
    t.embed_scope = m.scope;
    t.patch_embed =
        make_linear(c, "proj", checked_mul(g.channels, checked_mul(g.patch_size, g.patch_size)), g.hidden, false);
  }
  t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  t.blocks = make_layers(
      g.layers, [&](std::int32_t i) { return make_qwen2_vl_block(c, g.hidden, g.intermediate, g.activation, i); });
  t.norm = make_layer_norm(c, "ln", g.hidden);
  return t;
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeVisionTransformerPretrainedModel.forward: pixels[patches, taps] and
/// grid[N, 3] -> [patches, hidden].
inline Value forward(Context& c, const Ernie4_5Tower& t, const PackedImages& input,
                     std::span<const ImageLayout> images) {
  const Ernie4_5Vision& g = *t.config;
  InScope in(c.b, t.scope);
  const Value position_ids = vision_position_ids(c, input.grid, images, g.merge);
  const Segments segments = image_segments(c, input.grid, images);
  Value x;
  {
    InScope embed(c.b, t.embed_scope);
    x = forward(c, t.patch_embed, input.pixels);
  }
  x = input_embedding(c, std::move(x));
  const CosSin positions = forward(c, t.rope, position_ids);
  PackedStack stack(c, g.heads, positions);
  for (const auto& b : t.blocks) x = stack(b, x, segments);
  return forward(c, t.norm, x);
}

}  // namespace vlmest
