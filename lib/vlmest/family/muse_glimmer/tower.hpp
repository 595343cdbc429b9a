// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/vision/packed_block.hpp>
#include <vlmest/nn/vision/packed_windows.hpp>
#include <vlmest/nn/vision/position_interpolation.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// The vision transformer of Muse Glimmer (transformers models/muse_glimmer, MuseGlimmerVisionModel): packed patches,
/// windows in most layers, which are as large as the table of positions, and squares of patches that are folded into
/// channels behind the last layer. Defaults: MuseGlimmerVisionConfig.
struct MuseGlimmerVision {
  std::int64_t hidden = 1536;
  std::int64_t intermediate = 8960;
  std::int64_t layers = 50;
  std::int64_t heads = 16;
  std::int64_t patch_size = 14;
  std::int64_t frames = 2;       ///< patch_temporal
  std::int64_t table_rows = 32;  ///< pos_emb_height, also the side of a window in patches
  std::int64_t table_cols = 32;  ///< pos_emb_width
  std::int64_t merge = 2;        ///< merge_size
  Activation activation = Activation::gelu;
  std::vector<bool> windows;  ///< per layer

  static constexpr std::int64_t channels = 3;
  /// Channels of what the tower returns.
  std::int64_t folded() const { return checked_mul(hidden, checked_mul(merge, merge)); }
};

struct MuseVisionAttention {
  ScopeId scope = 0;
  Linear q, k, v, proj;
};

using MuseVisionBlock = PackedBlock<LayerNorm, Mlp, MuseVisionAttention>;

struct MuseGlimmerTower {
  const MuseGlimmerVision* config = nullptr;
  ScopeId scope = 0, embedder = 0;
  Linear patch_embedding;
  Embedding positions;
  AxialRope rope;
  LayerNorm ln_pre, ln_post;
  std::vector<MuseVisionBlock> layers;
};

/// In the order of MuseGlimmerVisionModel.__init__.
inline MuseGlimmerTower make_tower(Context& c, const MuseGlimmerVision& g) {
  MuseGlimmerTower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "patch_embedder");
    t.embedder = e.scope;
    const std::int64_t taps = checked_mul(checked_mul(g.frames, g.channels), checked_mul(g.patch_size, g.patch_size));
    t.patch_embedding = make_linear(c, "patch_embedding", taps, g.hidden, false);
    t.positions = make_embedding(c, "position_embedding_table", checked_mul(g.table_rows, g.table_cols), g.hidden);
  }
  t.rope = make_axial_rope(c, "rotary_emb", g.hidden / g.heads);
  t.ln_pre = make_layer_norm(c, "ln_pre", g.hidden);
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_split_block<MuseVisionAttention>(c, g, i); });
  t.ln_post = make_layer_norm(c, "ln_post", g.hidden);
  return t;
}

/// modeling_muse_glimmer.py, MuseGlimmerVisionPatchEmbedder.forward.
inline Value embed_patches(Context& c, const MuseGlimmerTower& t, const PackedImages& input,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.embedder);
  Value x = forward(c, t.patch_embedding, input.pixels);
  const Interpolation at = interpolate_positions(c, input.grid, images, Resampling::bilinear_zeros);
  Value entries = forward(c, t.positions, at.indices);
  const Value positions = sum(mul(std::move(entries), unsqueeze(at.weights, 2)), 1, false);
  x = add(x, to(positions, x.dtype()));
  return x;
}

/// modeling_muse_glimmer.py, MuseGlimmerVisionAttention.forward: x[patches, width] -> the same. The patches are a batch
/// of one while they turn; FlashAttention's longest segment is asked for in every layer.
inline Value forward(Context& c, const MuseVisionAttention& a, Value arg, std::int64_t heads, const CosSin& positions,
                     const Segments& segments) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, a.scope);
  const std::int64_t patches = x.size(0);
  const auto project = [&](const Linear& l) { return reshape(forward(c, l, x), {1, patches, heads, -1}); };
  Value q = project(a.q);
  Value k = project(a.k);
  Value v = project(a.v);
  apply_rope_fp32(c, q, k, positions);
  check_longest(c, segments);
  for (Value* y : {&q, &k, &v}) *y = view(std::move(*y), {patches, heads, -1});
  SegmentedAttention held;  // variables of the function: alive until it returns
  Value out = attend_segments(c, q, k, v, segments, held);
  out = forward(c, a.proj, out);
  return out;
}

/// modeling_muse_glimmer.py, get_vision_pixel_shuffle_index: the patches of each square one after the other,
/// int64[patches].
inline Value pixel_shuffle_index(Context& c, std::int64_t merge, const Value& grid,
                                 std::span<const ImageLayout> images) {
  using namespace eager;
  to_host(grid);
  std::vector<Value> all;
  Value order, frames;  // variables of the loop: kept until the next image rebinds them
  for (const ImageLayout& i : images) {
    order = arange(c.b, i.patches.count());
    order = view(order, {i.patches.rows / merge, merge, i.patches.cols / merge, merge});
    order = reshape(permute(order, {0, 2, 1, 3}), {-1});
    if (i.frames > 1) {
      Value starts = mul_scalar(arange(c.b, i.frames));
      frames = view(mul_scalar(std::move(starts)), {i.frames, 1});
      order = reshape(add(unsqueeze(order, 0), frames), {-1});
    }
    all.push_back(add_scalar(order));
  }
  return cat(all, 0);
}

/// modeling_muse_glimmer.py, MuseGlimmerVisionModel.pixel_shuffle: [patches, hidden] -> [squares, hidden * merge^2].
inline Value pixel_shuffle(Context& c, const MuseGlimmerVision& g, Value arg, const Value& grid,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  Value x = std::move(arg);
  const Value index = pixel_shuffle_index(c, g.merge, grid, images);
  x = take_rows(x, index);
  return reshape(permute(view(x, {-1, g.merge * g.merge, g.hidden}), {0, 2, 1}), {-1, g.folded()});
}

/// modeling_muse_glimmer.py, MuseGlimmerVisionModel.forward: pixels[patches, taps] and grid[N, 3] -> [squares, hidden *
/// merge^2]. Windows, positions and the table are of patches that are not merged yet.
inline Value forward(Context& c, const MuseGlimmerTower& t, const PackedImages& input,
                     std::span<const ImageLayout> images) {
  using namespace eager;
  const MuseGlimmerVision& g = *t.config;
  InScope in(c.b, t.scope);
  const Segments whole = frame_segments(input.grid, images);
  const PatchWindows size{.window_size = checked_mul(g.table_rows, g.patch_size), .patch_size = g.patch_size};
  const Segments windows = window_segments(c, size, input.grid, images);
  const Value embeds = embed_patches(c, t, input, images);
  Value x = forward(c, t.ln_pre, embeds);
  x = host_index(x, {x.size(0)});
  Value position_ids = vision_position_ids(c, input.grid, images, 1);
  position_ids = add_scalar(flip(position_ids));
  position_ids = host_index(position_ids, {x.size(0)});
  const CosSin positions = forward(c, t.rope, position_ids, c.dtype());
  PackedStack stack(c, g.heads, positions);
  for (std::size_t i = 0; i < t.layers.size(); ++i)
    x = stack(t.layers[i], x, g.windows[i] ? windows : whole, g.windows[i] ? 0 : 1);
  x = host_index(x, {x.size(0)});
  x = forward(c, t.ln_post, x);
  x = pixel_shuffle(c, g, x, input.grid, images);
  return x;
}

}  // namespace vlmest
