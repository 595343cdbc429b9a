// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include <vlmest/nn/context.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/kernels.hpp>

/// Towers that take the patches of all images of a batch as one sequence (Qwen2-VL, Qwen2.5-VL, Qwen3-VL, GLM-4V):
/// patch embedding, positions and boundaries of the images. grid_thw[N, 3] (int64) holds frames, rows and columns of
/// patches per image; images are single frames, videos have one for each temporal patch.
namespace vlmest {

/// Patches of all images.
inline std::int64_t total_patches(std::span<const ImageLayout> images) {
  std::int64_t n = 0;
  for (const auto& i : images) n = checked_add(n, checked_mul(i.patches.count(), i.frames));
  return n;
}

/// Grids of patches of all images: one of each picture, one for each temporal patch of a video.
inline std::int64_t total_frames(std::span<const ImageLayout> images) {
  std::int64_t n = 0;
  for (const auto& i : images) n = checked_add(n, i.frames);
  return n;
}

/// pixel_values[patches, channels * frames * side * side] and image_grid_thw[N, 3] of a batch, or pixel_values_videos
/// and video_grid_thw. Pixels are handed over in the model's type, or in one that its code casts itself.
struct PackedImages {
  Value pixels;
  Value grid;
};
inline PackedImages make_packed_images(Context& c, std::span<const ImageLayout> images, std::int64_t channels,
                                       std::int64_t frames, std::int64_t side, bool videos = false,
                                       std::optional<DType> as = {}) {
  PackedImages r;
  const std::int64_t taps = checked_mul(checked_mul(channels, frames), checked_mul(side, side));
  r.pixels = c.b.existing(videos ? "pixel_values_videos" : "pixel_values", Role::input, as.value_or(c.dtype()),
                          {total_patches(images), taps});
  r.grid = c.b.existing(videos ? "video_grid_thw" : "image_grid_thw", Role::input, DType::int64,
                        {static_cast<std::int64_t>(images.size()), 3});
  return r;
}

/// A patch embedding written as a 3-D convolution over [channels, frames, side, side] with stride = kernel.
struct PatchEmbed {
  ScopeId scope = 0, proj_scope = 0;
  TensorId weight = none, bias = none;
};

inline PatchEmbed make_patch_embed(Context& c, std::int64_t channels, std::int64_t frames, std::int64_t side,
                                   std::int64_t width, bool bias, const char* name = "patch_embed") {
  Module m(c, name);
  PatchEmbed p{.scope = m.scope};
  Module proj(c, "proj");
  p.proj_scope = proj.scope;
  p.weight = parameter(c, "weight", {width, channels, frames, side, side});
  if (bias) p.bias = parameter(c, "bias", {width});
  return p;
}

/// modeling_qwen2_vl.py, PatchEmbed.forward: pixels[patches, taps] -> [patches, width].
inline Value forward(Context& c, const PatchEmbed& p, const Value& pixels) {
  using namespace eager;
  InScope in(c.b, p.scope);
  Value weight(c.b, p.weight), bias;
  if (p.bias != none) bias = Value(c.b, p.bias);
  const Shape k = weight.shape();
  Value x = view(pixels, {-1, k[1], k[2], k[3], k[4]});
  InScope proj(c.b, p.proj_scope);
  return view(patch_conv3d(std::move(x), std::move(weight), std::move(bias)), {-1, k[0]});
}

/// vision_utils.py, get_vision_position_ids: row and column of every patch, int64[patches, 2], in the order in which
/// patches are merged (merge x merge blocks); `merges` int64[N] holds the sides of the blocks. With `times` the
/// temporal patch stands ahead of them: int64[patches, 3].
inline Value vision_position_ids(Context& c, const Value& grid, const Value& merges,
                                 std::span<const ImageLayout> images, std::int64_t merge, bool times = false) {
  using namespace eager;
  to_host(grid);
  to_host(merges);
  std::vector<Value> all;
  Value rows, cols, frames;  // variables of the loop: kept until the next image rebinds them
  for (const auto& i : images) {
    const Grid g = i.patches;
    Value r = arange(c.b, g.rows);
    Value k = arange(c.b, g.cols);
    rows = expand(view(std::move(r), {g.rows, 1}), {g.rows, g.cols});
    cols = expand(view(std::move(k), {1, g.cols}), {g.rows, g.cols});
    auto blocks = [&](const Value& v) {
      return reshape(transpose(view(v, {g.rows / merge, merge, g.cols / merge, merge}), 1, 2), {-1});
    };
    rows = blocks(rows);
    cols = blocks(cols);
    if (times) {
      Value each = arange(c.b, i.frames);
      frames = repeat_interleave(std::move(each), g.count(), 0);
      std::array<Value, 3> places{frames, {}, {}};
      places[1] = repeat(rows, {i.frames});
      places[2] = repeat(cols, {i.frames});
      all.push_back(stack(places, -1));
      continue;
    }
    std::array<Value, 2> pair{rows, cols};
    Value stacked = stack(pair, -1);
    all.push_back(repeat(std::move(stacked), {i.frames, 1}));
  }
  return cat(all, 0);
}
/// With one merge for all pictures, which the function gets as a number.
inline Value vision_position_ids(Context& c, const Value& grid, std::span<const ImageLayout> images, std::int64_t merge,
                                 bool times = false) {
  using namespace eager;
  const Value merges = expand(from_host(c.b, {1}, DType::int64), {static_cast<std::int64_t>(images.size())});
  return vision_position_ids(c, grid, merges, images, merge, times);
}

/// vision_utils.py, get_vision_cu_seqlens: where the patches of each of `frames` grids begin and end, int32[frames +
/// 1].
inline Value vision_cu_seqlens(const Value& grid, std::int64_t frames) {
  using namespace eager;
  Value lengths = mul(select(grid, 1, 1), select(grid, 1, 2));
  Value index = repeat_interleave_index(select(grid, 1, 0), frames);
  Value seqlens = index_select(std::move(lengths), 0, std::move(index));
  Value sums = cumsum(seqlens, DType::int32);
  return constant_pad(std::move(sums), frames + 1);
}

/// Rotary embedding over rows and columns: a quarter of the head's channels as frequencies for each axis.
struct AxialRope {
  ScopeId scope = 0;
  TensorId inv_freq = none;
};

/// modeling_qwen2_vl.py, Qwen2VLVisionRotaryEmbedding.__init__: arange(0, head_dim // 2, 2) entries.
inline AxialRope make_axial_rope(Context& c, const char* name, std::int64_t head_dim) {
  Module m(c, name);
  AxialRope r{.scope = m.scope};
  const std::int64_t n = (head_dim / 2 + 1) / 2;
  r.inv_freq = buffer(c, "inv_freq", {n}, DType::fp32);
  buffer(c, "original_inv_freq", {n}, DType::fp32);
  return r;
}

/// modeling_qwen2_vl.py, Qwen2VLVisionRotaryEmbedding.forward: positions[patches, 2] -> fp32 cos, sin[patches,
/// head_dim]; modeling_muse_glimmer.py, MuseGlimmerVisionRotaryEmbedding.forward, casts them before it returns.
inline CosSin forward(Context& c, const AxialRope& r, const Value& positions, DType as = DType::fp32) {
  using namespace eager;
  InScope in(c.b, r.scope);
  Value expanded = to(unsqueeze(positions, -1), DType::fp32);
  Value freqs = mul(expanded, Value(c.b, r.inv_freq));
  CosSin e;
  e.cos = mul_scalar(eager::cos(freqs));
  e.sin = mul_scalar(eager::sin(freqs));
  auto both_axes = [&](const Value& f) {
    Value axes = cat(select(f, 1, 0), select(f, 1, 1), -1);
    return cat(axes, axes, -1);
  };
  e.cos = both_axes(e.cos);
  e.sin = both_axes(e.sin);
  CosSin out;
  out.cos = to(e.cos, as);
  out.sin = to(e.sin, as);
  return out;
}

/// modeling_qwen2_vl.py, apply_rotary_pos_emb_vision: q and k[patches, heads, head_dim] are rotated in fp32 and cast
/// back; all fp32 tensors are variables of the function.
inline void apply_rope_fp32(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const DType t = q.dtype();
    Value wide_q = to(q, DType::fp32);
    Value wide_k = to(k, DType::fp32);
    Value cos = to(unsqueeze(e.cos, -2), DType::fp32), sin = to(unsqueeze(e.sin, -2), DType::fp32);
    Value rotated_q = rotate(wide_q, cos, sin);
    Value rotated_k = rotate(wide_k, cos, sin);
    rotated_q = to(rotated_q, t);
    rotated_k = to(rotated_k, t);
    q = std::move(rotated_q);
    k = std::move(rotated_k);
  });
}

}  // namespace vlmest
