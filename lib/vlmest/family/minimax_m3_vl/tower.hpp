// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/nn/vision/clip.hpp>
#include <vlmest/nn/vision/packed_patches.hpp>

namespace vlmest {

/// The vision transformer of MiniMax-M3 (transformers models/minimax_m3_vl, MiniMaxM3VLVisionModel): CLIP's layers over
/// the patches of all pictures of a batch as one sequence, every one of which sees every other; queries and keys turn.
/// Defaults: MiniMaxM3VLVisionConfig.
struct MiniMaxM3Vision {
  std::int64_t hidden = 1280;
  std::int64_t intermediate = 5120;
  std::int64_t layers = 32;
  std::int64_t heads = 16;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t frames = 2;  ///< temporal_patch_size
  std::int64_t merge = 2;   ///< spatial_merge_size
  Activation activation = Activation::gelu;
  bool attention_dropout = false;  ///< in training mode
};

struct MiniMaxM3Tower {
  const MiniMaxM3Vision* config = nullptr;
  ScopeId scope = 0;
  PatchEmbed embeddings;
  LayerNorm pre_norm;
  std::vector<ClipLayer> layers;
  AxialRope rope;
};

/// In the order of MiniMaxM3VLVisionModel.__init__.
inline MiniMaxM3Tower make_tower(Context& c, const MiniMaxM3Vision& g) {
  MiniMaxM3Tower t{.config = &g, .scope = c.b.scope()};
  t.embeddings = make_patch_embed(c, g.channels, g.frames, g.patch_size, g.hidden, false, "embeddings");
  t.pre_norm = make_layer_norm(c, "pre_layrnorm", g.hidden);
  t.layers = make_layers(g.layers,
                         [&](std::int32_t i) { return make_clip_layer(c, g.hidden, g.intermediate, g.activation, i); });
  t.rope = make_axial_rope(c, "rotary_emb", g.hidden / g.heads);
  return t;
}

/// modeling_minimax_m3_vl.py, apply_rotary_pos_emb_vision: q and k[1, patches, heads, channels]; what turned stays
/// beside what it is joined to until the function returns.
inline void turn_patches(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const auto beside_heads = [](const Value& v) { return unsqueeze(unsqueeze(v, 0), 2); };
    const Value cos = beside_heads(e.cos), sin = beside_heads(e.sin);
    const std::int64_t turned = cos.size(-1), all = q.size(-1);
    const Value q_turn = slice(q, -1, 0, turned), q_pass = slice(q, -1, turned, all);
    const Value k_turn = slice(k, -1, 0, turned), k_pass = slice(k, -1, turned, all);
    const Value rotated_q = rotate(q_turn, cos, sin);
    const Value rotated_k = rotate(k_turn, cos, sin);
    Value joined_q = cat(rotated_q, q_pass, -1);
    Value joined_k = cat(rotated_k, k_pass, -1);
    q = std::move(joined_q);
    k = std::move(joined_k);
  });
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLVisionAttention.forward.
inline Attended tower_attention(Context& c, const MiniMaxM3Vision& g, const ClipLayer& l, const Value& x,
                                const CosSin& positions) {
  using namespace eager;
  InScope in(c.b, l.attention.scope);
  const Shape heads{x.size(0), x.size(1), -1, g.hidden / g.heads};
  Value q = view(forward(c, l.attention.q, x), heads);
  Value k = view(forward(c, l.attention.k, x), heads);
  const Value v = transpose(view(forward(c, l.attention.v, x), heads), 1, 2);
  turn_patches(c, q, k, positions);
  q = transpose(std::move(q), 1, 2);
  k = transpose(std::move(k), 1, 2);
  Attended a = stacks::attend(c, {.q = q, .k = k, .v = v, .mask = {}, .dropout = g.attention_dropout});
  project_out(c, l.attention.out, a);
  return a;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLVisionModel.forward: pixels[patches, taps] and grid[N, 3] -> last hidden
/// states [1, patches, hidden]. The class names no input embeddings, so that enable_input_require_grads() leaves it
/// out.
inline Value forward(Context& c, const MiniMaxM3Tower& t, const PackedImages& input,
                     std::span<const ImageLayout> images) {
  using namespace eager;
  const MiniMaxM3Vision& g = *t.config;
  InScope in(c.b, t.scope);
  const Value embeds = forward(c, t.embeddings, input.pixels);
  const Value position_ids = vision_position_ids(c, input.grid, images, g.merge, true);
  const CosSin positions = forward(c, t.rope, position_ids, c.dtype());
  Value x = unsqueeze(forward(c, t.pre_norm, embeds), 0);
  LayerRepeater repeat(c.b);
  for (const ClipLayer& l : t.layers)
    x = repeat({0, l.scope, first_parameter(l)}, x, {}, [&](const Value& h) {
      return pre_norm_layer(
          c, l.scope, h, l.norm1, [&](const Value& y) { return tower_attention(c, g, l, y, positions); }, l.norm2,
          [&](const Value& y) { return forward(c, l.mlp, y); });
    });
  return x;
}

}  // namespace vlmest
