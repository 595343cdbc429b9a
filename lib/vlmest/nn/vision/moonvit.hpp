// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <vlmest/nn/vision/packed_block.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>
#include <vlmest/nn/vision/position_interpolation.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// MoonViT-3D, the vision transformer of Kimi-K2.5 (Moonshot AI, Kimi K2.5, arXiv:2602.02276; transformers
/// models/kimi_k25, Kimi_K25VisionModel): a table of positions resampled to each image, a sinusoid for each frame,
/// attention over all frames of an image or clip, which are averaged in the end. Defaults: Kimi_K25VisionConfig.
struct MoonVit {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t layers = 27;
  std::int64_t heads = 16;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t table_rows = 64;  ///< pos_emb_height
  std::int64_t table_cols = 64;  ///< pos_emb_width
  std::int64_t table_times = 4;  ///< pos_emb_time
  std::int64_t merge = 2;        ///< merge_kernel_size: side of the squares that go into one row of the projector
  Activation activation = Activation::gelu_tanh;

  std::int64_t merged() const { return checked_mul(merge, merge); }
};

struct MoonVitAttention {
  ScopeId scope = 0;
  Linear proj, q, k, v;
};

using MoonVitBlock = PackedBlock<LayerNorm, Mlp, MoonVitAttention>;

struct MoonVitTower {
  const MoonVit* config = nullptr;
  ScopeId scope = 0, embed_scope = 0, positions_scope = 0;
  PatchConv patches;
  TensorId table = none;  ///< [table_rows, table_cols, hidden]
  TensorId times = none;  ///< fp32[1 + table_times, hidden]: nothing for pictures, then each frame's sinusoid
  AxialRope rope;
  std::vector<MoonVitBlock> layers;
  LayerNorm final_norm;
};

/// In the order of Kimi_K25VisionModel.__init__.
inline MoonVitTower make_tower(Context& c, const MoonVit& g) {
  MoonVitTower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "patch_embed");
    t.embed_scope = e.scope;
    t.patches = make_patch_conv(c, "proj", g, true);
    Module p(c, "pos_emb");
    t.positions_scope = p.scope;
    t.table = parameter(c, "position_embeddings", {g.table_rows, g.table_cols, g.hidden});
    t.times = buffer(c, "time_position_embeddings", {checked_add(g.table_times, 1), g.hidden}, DType::fp32);
  }
  t.rope = make_axial_rope(c, "rotary_emb", g.hidden / g.heads);
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_split_block<MoonVitAttention>(c, g, i); });
  t.final_norm = make_layer_norm(c, "final_layernorm", g.hidden);
  return t;
}

/// pixel_values[patches, channels, side, side] and image_grid_thw[N, 3] of a batch.
inline PackedImages make_square_patches(Context& c, const MoonVit& g, std::span<const ImageLayout> images) {
  PackedImages r;
  r.pixels = c.b.existing("pixel_values", Role::input, c.dtype(),
                          {total_patches(images), g.channels, g.patch_size, g.patch_size});
  r.grid = c.b.existing("image_grid_thw", Role::input, DType::int64, {static_cast<std::int64_t>(images.size()), 3});
  return r;
}

/// modeling_kimi_k25.py, get_vision_frame_index: the row of the table of times for each patch, int64[patches].
inline Value frame_index(Context& c, const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  to_host(grid);
  std::vector<Value> parts;
  Value frames;  // a variable of the loop: kept until the next image rebinds it
  for (const ImageLayout& i : images) {
    Value counted = arange(c.b, i.frames);
    frames = add_scalar(std::move(counted));
    const std::int64_t patches = i.patches.count();
    Value each = clone_contiguous(expand(unsqueeze(frames, 1), {i.frames, patches}));
    parts.push_back(view(std::move(each), {checked_mul(i.frames, patches)}));
  }
  return cat(parts, 0);
}

/// modeling_kimi_k25.py, Kimi_K25VisionPositionEmbeddings.forward: x[patches, hidden] and the positions.
inline Value add_positions(Context& c, const MoonVitTower& t, const Value& x, const Value& grid,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.positions_scope);
  const std::int64_t hidden = t.config->hidden;
  const Value table = view(Value(c.b, t.table), {-1, hidden});
  const Interpolation at = interpolate_positions(c, grid, images, Resampling::bicubic);
  Value weights = to(at.weights, table.dtype());
  Value positions = embedding_bag(table, at.indices, std::move(weights));
  Value frames = frame_index(c, grid, images);
  Value times = gather_rows("index.Tensor", Value(c.b, t.times), std::move(frames), {x.size(0), hidden});
  positions = add(positions, std::move(times));
  Value narrow = to(positions, x.dtype());
  return add(x, std::move(narrow));
}

/// modeling_kimi_k25.py, Kimi_K25VisionRotaryEmbedding.forward: positions[patches, 2] -> fp32 cos, sin[patches,
/// head_dim], in which columns and rows take turns.
inline CosSin moonvit_angles(Context& c, const AxialRope& r, const Value& positions) {
  using namespace eager;
  InScope in(c.b, r.scope);
  Value expanded = to(unsqueeze(positions, -1), DType::fp32);
  Value freqs = mul(expanded, Value(c.b, r.inv_freq));
  CosSin e;
  e.cos = mul_scalar(eager::cos(freqs));
  e.sin = mul_scalar(eager::sin(freqs));
  const auto in_turns = [](const Value& f) {
    const Value turns = flatten(flip(transpose(f, 1, 2)), 1, 2);
    return cat(turns, turns, -1);
  };
  e.cos = in_turns(e.cos);
  e.sin = in_turns(e.sin);
  return e;
}

/// vision_utils.py, get_vision_cu_seqlens with merge_temporal: a clip's frames see each other.
inline Segments clip_segments(Context& c, const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  Segments s;
  const auto n = static_cast<std::int64_t>(images.size());
  Value area = mul(select(grid, 1, 0), select(grid, 1, 1));
  const Value lengths = mul(std::move(area), select(grid, 1, 2));
  s.cu_seqlens = constant_pad(cumsum(lengths, DType::int32), n + 1);
  for (const ImageLayout& i : images) s.lengths.push_back(checked_mul(i.patches.count(), i.frames));
  check_longest(c, s);
  return s;
}

/// modeling_kimi_k25.py, Kimi_K25VisionAttention.forward: x[patches, width] -> the same.
inline Value forward(Context& c, const MoonVitAttention& a, Value arg, std::int64_t heads, const CosSin& positions,
                     const Segments& segments) {
  using namespace eager;
  const Value x = std::move(arg);
  InScope in(c.b, a.scope);
  const std::int64_t patches = x.size(0), head_dim = x.size(1) / heads;
  const auto project = [&](const Linear& l) { return reshape(forward(c, l, x), {1, patches, heads, head_dim}); };
  Value q = project(a.q);
  Value k = project(a.k);
  Value v = project(a.v);
  apply_rope_fp32(c, q, k, positions);
  SegmentedAttention attended;
  if (c.attention() == AttentionKind::flash) {
    const auto packed = [](const Value& y) { return squeeze(y, 0); };
    attended.out = flash_attn_varlen_func(packed(q), packed(k), packed(v), segments.cu_seqlens, segments.lengths);
  } else {
    for (Value* y : {&q, &k, &v}) *y = transpose(std::move(*y), 1, 2);
    attended = attend_in_segments(c, q, k, v, segments);
  }
  Value out = contiguous(reshape(std::move(attended.out), {patches, -1}));
  out = forward(c, a.proj, out);
  return out;
}

/// modeling_kimi_k25.py, get_vision_temporal_merge_index: the patches of each merged one, frame by frame, int64[merged,
/// frames, merge^2]. Throws Error for clips of several lengths, which the model cannot join.
inline Value temporal_merge_index(Context& c, const MoonVit& g, const Value& grid,
                                  std::span<const ImageLayout> images) {
  using namespace eager;
  to_host(grid);
  std::vector<Value> rows;
  Value base;  // a variable of the loop: kept until the next image rebinds it
  for (const ImageLayout& i : images) {
    if (i.frames != images.front().frames)
      throw Error("plan.video", "this tower joins clips of one length only", "give clips of one length");
    const std::int64_t r = i.patches.rows / g.merge, k = i.patches.cols / g.merge;
    Value places = fill(c.b, "arange.start", {checked_mul(i.frames, i.patches.count())}, DType::int64);
    base = view(std::move(places), {i.frames, r, g.merge, k, g.merge});
    base = reshape(permute(base, {1, 3, 0, 2, 4}), {checked_mul(r, k), i.frames, g.merged()});
    rows.push_back(base);
  }
  return cat(rows, 0);
}

/// modeling_kimi_k25.py, Kimi_K25VisionModel.forward: pixels[patches, channels, side, side] and grid[N, 3] -> last
/// hidden states[patches, hidden] and the mean over frames, [merged, merge^2, hidden].
inline TowerOutput forward(Context& c, const MoonVitTower& t, const PackedImages& input,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  const MoonVit& g = *t.config;
  InScope in(c.b, t.scope);
  TowerOutput out;
  {
    InScope e(c.b, t.embed_scope);
    Value x = embed_patches(c, t.patches, input.pixels);
    x = add_positions(c, t, x, input.grid, images);
    out.last = std::move(x);
  }
  const Value position_ids = vision_position_ids(c, input.grid, images, 1);
  const CosSin positions = moonvit_angles(c, t.rope, position_ids);
  const Segments segments = clip_segments(c, input.grid, images);
  PackedStack stack(c, g.heads, positions);
  for (const MoonVitBlock& b : t.layers) out.last = stack(b, out.last, segments);
  out.last = forward(c, t.final_norm, out.last);
  const Value index = temporal_merge_index(c, g, input.grid, images);
  Value gathered = take_rows(out.last, index);
  out.pooled = mean(std::move(gathered), 1, false);
  return out;
}

}  // namespace vlmest
