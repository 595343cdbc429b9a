// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <vlmest/family/kimi_vl/tower_layer.hpp>
#include <vlmest/nn/vision/patch_conv.hpp>

/// MoonViT as Kimi-VL's own code runs it (modeling_kimi_vl.py, MoonVitPretrainedModel): patches of all pictures as one
/// sequence, a table of positions resampled to each picture, rotation over rows and columns by complex numbers.
namespace vlmest {

/// MoonViTConfig.
struct KimiVlVision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t layers = 27;
  std::int64_t heads = 16;
  std::int64_t patch_size = 14;
  std::int64_t channels = 3;
  std::int64_t table_rows = 64;  ///< init_pos_emb_height
  std::int64_t table_cols = 64;  ///< init_pos_emb_width
  std::int64_t merge_rows = 2;   ///< merge_kernel_size: patches that go into one row of the projector
  std::int64_t merge_cols = 2;

  std::int64_t merged() const { return checked_mul(merge_rows, merge_cols); }
};

struct KimiVlTower {
  const KimiVlVision* config = nullptr;
  ScopeId scope = 0, embed_scope = 0, positions_scope = 0, encoder_scope = 0;
  PatchConv patches;
  TensorId table = none;  ///< [table_rows, table_cols, hidden]
  std::vector<KimiVlBlock> blocks;
  LayerNorm final_norm;
};

/// What the tower is called with; `turns` is the rotations' table, which its first call makes and keeps: complex64[512,
/// 512, head_dim / 2].
struct KimiVlImages {
  Value pixels;  ///< [patches, channels, side, side]
  Value grid;    ///< image_grid_hws, int64[pictures, 2]
  Value turns;
};

/// In the order of MoonVitPretrainedModel.__init__. The encoder's rope_2d has no parameters.
inline KimiVlTower make_tower(Context& c, const KimiVlVision& g) {
  KimiVlTower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "patch_embed");
    t.embed_scope = e.scope;
    t.patches = make_patch_conv(c, "proj", g, true);
    Module p(c, "pos_emb");
    t.positions_scope = p.scope;
    t.table = parameter(c, "weight", {g.table_rows, g.table_cols, g.hidden});
  }
  Module e(c, "encoder");
  t.encoder_scope = e.scope;
  t.blocks = make_layers(g.layers,
                         [&](std::int32_t i) { return make_kimi_vl_block(c, g.hidden, g.intermediate, g.heads, i); });
  t.final_norm = make_layer_norm(c, "final_layernorm", g.hidden);
  return t;
}

inline KimiVlImages make_kimi_vl_images(Context& c, const KimiVlVision& g, std::span<const ImageLayout> images) {
  constexpr std::int64_t sides = 512;  // of Rope2DPosEmb in MoonVitEncoder.__init__
  KimiVlImages r;
  r.pixels = c.b.existing("pixel_values", Role::input, c.dtype(),
                          {total_patches(images), g.channels, g.patch_size, g.patch_size});
  r.grid = c.b.existing("image_grid_hws", Role::input, DType::int64, {static_cast<std::int64_t>(images.size()), 2});
  r.turns = c.b.existing("freqs_cis", Role::buffer, DType::complex64, {sides, sides, g.hidden / g.heads / 2});
  return r;
}

/// Learnable2DInterpPosEmb.forward: x[patches, hidden] plus the table at each picture's size, which is resampled even
/// where it has that size (a list is compared with a torch.Size).
inline Value add_table(Context& c, const KimiVlTower& t, const Value& x, const Value& grid,
                       std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.positions_scope);
  to_host(grid);
  std::vector<Value> positions;
  for (const ImageLayout& i : images) {
    Value table = unsqueeze(permute(Value(c.b, t.table), {2, 0, 1}), 0);
    Value sized = upsample_bicubic2d(std::move(table), i.patches.rows, i.patches.cols);
    positions.push_back(flatten(permute(squeeze(std::move(sized), 0), {1, 2, 0}), 0, 1));
  }
  std::vector<Value> references = positions;  // the list is a variable: alive until the function returns
  Value all = cat(references, 0);
  return add(x, std::move(all));
}

/// Rope2DPosEmb.get_freqs_cis: complex64[patches, head_dim / 2].
inline Value patch_turns(const Value& table, const Value& grid, std::span<const ImageLayout> images) {
  using namespace eager;
  to_host(grid);
  std::vector<Value> parts;
  for (const ImageLayout& i : images) {
    Value part = slice(slice(table, 0, 0, i.patches.rows), 1, 0, i.patches.cols);
    parts.push_back(reshape(std::move(part), {-1, table.size(2)}));
  }
  return cat(parts, 0);
}

/// MoonVitEncoder.forward.
inline Value encode(Context& c, const KimiVlTower& t, Value arg, const KimiVlImages& in,
                    std::span<const ImageLayout> images) {
  using namespace eager;
  Value x = std::move(arg);
  InScope scope(c.b, t.encoder_scope);
  const Value turns = patch_turns(in.turns, in.grid, images);
  Value zero = fill(c.b, "zeros", {1}, DType::int64);
  Value areas = mul(select(in.grid, 1, 0), select(in.grid, 1, 1));
  const Value lengths = cat(std::move(zero), std::move(areas), 0);
  Segments segments;
  segments.cu_seqlens = cumsum(lengths, DType::int32);
  for (const ImageLayout& i : images) segments.lengths.push_back(i.patches.count());
  LayerRepeater repeat(c.b, false);  // MoonVitEncoderLayer is no GradientCheckpointingLayer
  for (const KimiVlBlock& b : t.blocks)
    x = repeat({0, b.scope, b.norm0.weight}, x, {}, [&](const Value& h) { return forward(c, b, h, segments, turns); });
  return forward(c, t.final_norm, x);
}

/// patch_merger: of each picture int64[merged, merge_rows * merge_cols, hidden], its patches in the order of the
/// merged ones.
inline std::vector<Value> merge_patches(const KimiVlVision& g, const Value& x, const Value& grid,
                                        std::span<const ImageLayout> images) {
  using namespace eager;
  to_host(grid);
  std::vector<Value> outputs;
  Value rows;  // variables of the loop: kept until the next picture rebinds them
  std::int64_t at = 0;
  for (const ImageLayout& i : images) {
    const std::int64_t patches = i.patches.count(), r = i.patches.rows / g.merge_rows,
                       k = i.patches.cols / g.merge_cols;
    Value part = view(slice_view(x, 0, at, at + patches), {r, g.merge_rows, k, g.merge_cols, g.hidden});
    rows = contiguous(permute(std::move(part), {0, 2, 1, 3, 4}));
    outputs.push_back(view(rows, {checked_mul(r, k), g.merged(), -1}));
    at += patches;
  }
  return outputs;
}

/// MoonVitPretrainedModel.forward: a list with the merged patches of each picture.
inline std::vector<Value> forward(Context& c, const KimiVlTower& t, const KimiVlImages& input,
                                  std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.scope);
  Value x;
  {
    InScope e(c.b, t.embed_scope);
    x = embed_patches(c, t.patches, input.pixels);
    x = add_table(c, t, x, input.grid, images);
  }
  x = encode(c, t, x, input, images);
  return merge_patches(*t.config, x, input.grid, images);
}

}  // namespace vlmest
