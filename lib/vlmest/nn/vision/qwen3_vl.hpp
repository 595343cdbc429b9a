// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/vision/packed_block.hpp>
#include <vlmest/nn/vision/position_interpolation.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// Qwen3-VL's vision transformer with its mergers: one for the last layer and one for each layer whose features go
/// straight into the language model's first layers (DeepStack, arXiv:2406.04334). Defaults: Qwen3VLVisionConfig.
struct Qwen3VlVision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t layers = 27;  ///< depth
  std::int64_t heads = 16;
  std::int64_t patch_size = 16;
  std::int64_t frames = 2;  ///< temporal_patch_size; a still picture fills it with copies of itself
  std::int64_t channels = 3;
  std::int64_t merge = 2;  ///< spatial_merge_size
  std::int64_t out_hidden = 3584;
  std::int64_t positions = 2304;                   ///< entries of the position table
  std::vector<std::int64_t> deepstack{8, 16, 24};  ///< deepstack_visual_indexes
  Activation activation = Activation::gelu_tanh;
  bool omni = false;  ///< Qwen3-Omni's names: mergers are called merger_list and come first, their layers a list
};

using Qwen3VlBlock = PackedBlock<LayerNorm, Mlp>;

/// merge x merge patches become one row of the language model's width. `late` norms the merged row, else each patch.
struct Qwen3VlMerger {
  ScopeId scope = 0, activation_scope = 0;
  std::int64_t width = 0;  ///< of a merged row
  bool late = false;       ///< use_postshuffle_norm
  LayerNorm norm;
  Linear fc1, fc2;
};

struct Qwen3VlTower {
  const Qwen3VlVision* config = nullptr;
  ScopeId scope = 0;
  PatchEmbed patch_embed;
  Embedding positions;
  AxialRope rope;
  std::vector<Qwen3VlBlock> blocks;
  Qwen3VlMerger merger;
  std::vector<Qwen3VlMerger> deepstack;
};

/// In the order of Qwen3VLVisionBlock.__init__.
inline Qwen3VlBlock make_qwen3_vl_block(Context& c, const Qwen3VlVision& g, std::int32_t index) {
  Module m(c, "blocks", index);
  Qwen3VlBlock b{.scope = m.scope};
  b.norm1 = make_layer_norm(c, "norm1", g.hidden);
  b.norm2 = make_layer_norm(c, "norm2", g.hidden);
  b.attention = make_packed_attention(c, g.hidden, true, true);
  Module p(c, "mlp");
  b.mlp.scope = p.scope;
  b.mlp.activation = g.activation;
  b.mlp.fc1 = make_linear(c, "linear_fc1", g.hidden, g.intermediate, true);
  b.mlp.fc2 = make_linear(c, "linear_fc2", g.intermediate, g.hidden, true);
  b.mlp.activation_scope = c.b.child("act_fn");
  return b;
}

inline Qwen3VlMerger make_qwen3_vl_merger(Context& c, const Qwen3VlVision& g, const char* name, std::int32_t index,
                                          bool late) {
  Module m(c, name, index);
  Qwen3VlMerger r{.scope = m.scope, .width = checked_mul(g.hidden, checked_mul(g.merge, g.merge)), .late = late};
  if (g.omni) {
    r.norm = make_layer_norm(c, "ln_q", late ? r.width : g.hidden);
    r.fc1 = make_linear(c, "mlp", r.width, r.width, true, 0);
    r.activation_scope = c.b.child("mlp", 1);
    r.fc2 = make_linear(c, "mlp", r.width, g.out_hidden, true, 2);
    return r;
  }
  r.norm = make_layer_norm(c, "norm", late ? r.width : g.hidden);
  r.fc1 = make_linear(c, "linear_fc1", r.width, r.width, true);
  r.activation_scope = c.b.child("act_fn");
  r.fc2 = make_linear(c, "linear_fc2", r.width, g.out_hidden, true);
  return r;
}

/// In the order of Qwen3VLVisionModel.__init__.
inline Qwen3VlTower make_tower(Context& c, const Qwen3VlVision& g) {
  Qwen3VlTower t{.config = &g, .scope = c.b.scope()};
  const auto make_deepstack = [&](const char* name) {
    for (std::size_t i = 0; i < g.deepstack.size(); ++i)
      t.deepstack.push_back(make_qwen3_vl_merger(c, g, name, static_cast<std::int32_t>(i), true));
  };
  if (g.omni) make_deepstack("merger_list");
  t.patch_embed = make_patch_embed(c, g.channels, g.frames, g.patch_size, g.hidden, true);
  t.positions = make_embedding(c, "pos_embed", g.positions, g.hidden);
  t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  t.blocks = make_layers(g.layers, [&](std::int32_t i) { return make_qwen3_vl_block(c, g, i); });
  t.merger = make_qwen3_vl_merger(c, g, "merger", none, false);
  if (!g.omni) make_deepstack("deepstack_merger_list");
  return t;
}

/// modeling_qwen3_omni_moe.py, Qwen3OmniMoeVisionPatchMerger.forward: each layer rebinds the variable.
inline Value forward_list(Context& c, const Qwen3VlMerger& m, Value x) {
  using namespace eager;
  InScope in(c.b, m.scope);
  Value y = view(forward(c, m.norm, m.late ? view(x, {-1, m.width}) : x), {-1, m.width});
  y = forward(c, m.fc1, y);
  {
    InScope a(c.b, m.activation_scope);
    y = unary(functions::gelu, y);
  }
  y = forward(c, m.fc2, y);
  return y;
}

/// modeling_qwen3_vl.py, Qwen3VLVisionPatchMerger.forward.
inline Value forward(Context& c, const Qwen3VlMerger& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  x = view(forward(c, m.norm, m.late ? view(x, {-1, m.width}) : x), {-1, m.width});
  Value y = forward(c, m.fc1, x);
  {
    InScope a(c.b, m.activation_scope);
    y = unary(functions::gelu, std::move(y));
  }
  return forward(c, m.fc2, std::move(y));
}

/// What the tower returns: TowerOutput and the merged features of each DeepStack layer, [rows, out_hidden].
struct Qwen3VlFeatures {
  TowerOutput tower;
  std::vector<Value> deepstack;
};

/// Patches plus the interpolated position embeddings; the fp32 sum is a variable of the tower's forward and stays in
/// `positions`.
inline Value embed_patches(Context& c, const Qwen3VlTower& t, const Value& pixels, const Interpolation& at,
                           Value& positions) {
  using namespace eager;
  Value x = forward(c, t.patch_embed, pixels);
  Value entries = forward(c, t.positions, at.indices);
  positions = sum(mul(std::move(entries), unsqueeze(at.weights, 2)), 1, false);
  Value narrow = to(positions, x.dtype());
  return add(std::move(x), std::move(narrow));
}

/// modeling_qwen3_vl.py, Qwen3VLVisionModel.forward: pixels[patches, taps] and grid[N, 3] -> last hidden states
/// [patches, hidden] and merged features [patches / merge^2, out_hidden].
inline Qwen3VlFeatures forward(Context& c, const Qwen3VlTower& t, const PackedImages& input,
                               std::span<const ImageLayout> images) {
  const Qwen3VlVision& g = *t.config;
  InScope in(c.b, t.scope);
  const Interpolation interpolation = interpolate_positions(c, input.grid, images);
  Value position_ids = vision_position_ids(c, input.grid, images, g.merge);
  const Segments segments = image_segments(c, input.grid, images);
  Qwen3VlFeatures out;
  const auto merge = [&](const Qwen3VlMerger& m, const Value& h) {
    return g.omni ? forward_list(c, m, h) : forward(c, m, h);
  };
  Value learned;
  Value x = embed_patches(c, t, input.pixels, interpolation, learned);
  const CosSin positions = forward(c, t.rope, position_ids);
  PackedStack stack(c, g.heads, positions);
  for (std::int64_t i = 0; i < g.layers; ++i) {
    x = stack(t.blocks[static_cast<std::size_t>(i)], x, segments);
    const auto at = std::find(g.deepstack.begin(), g.deepstack.end(), i);
    if (at != g.deepstack.end())
      out.deepstack.push_back(merge(t.deepstack[static_cast<std::size_t>(at - g.deepstack.begin())], x));
  }
  out.tower.last = x;
  out.tower.pooled = merge(t.merger, x);
  return out;
}

}  // namespace vlmest
