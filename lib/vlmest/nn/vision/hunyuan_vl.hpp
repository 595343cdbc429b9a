// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include <vlmest/graph/eager/resample.hpp>
#include <vlmest/nn/vision/packed_siglip.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// HunYuan-VL's vision transformer (transformers models/hunyuan_vl, HunYuanVLVisionTransformer): SigLIP's layers over
/// packed patches, a table of positions interpolated for each picture, and a merger of convolutions that puts a token
/// behind each row and two around each picture. Defaults: HunYuanVLVisionConfig.
struct HunYuanVision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t layers = 27;
  std::int64_t heads = 16;
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  std::int64_t merge = 2;          ///< spatial_merge_size
  std::int64_t image_size = 2048;  ///< max_image_size: side of the table of positions, in pixels
  std::int64_t out = 4096;         ///< the language model's width
  bool cubic = false;              ///< interpolate_mode bicubic
  Activation activation = Activation::gelu;
};

struct MergerConv {
  ScopeId scope = 0;
  TensorId weight = none, bias = none;
};

struct HunYuanMerger {
  ScopeId scope = 0, activation_scope = 0;
  MergerConv squares, widen;
  Linear mlp;
  TensorId newline = none, begin = none, end = none;
  RmsNorm before, after;
};

struct HunYuanTower {
  const HunYuanVision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  std::vector<ClipLayer> layers;
  HunYuanMerger merger;
};

inline MergerConv make_merger_conv(Context& c, const char* name, std::int64_t in, std::int64_t out, std::int64_t side) {
  Module m(c, name);
  MergerConv r{.scope = m.scope};
  r.weight = parameter(c, "weight", {out, in, side, side});
  r.bias = parameter(c, "bias", {out});
  return r;
}

/// In the order of HunYuanVLVisionBlock.__init__.
inline ClipLayer make_hunyuan_block(Context& c, const HunYuanVision& g, std::int32_t index) {
  Module m(c, "layers", index);
  ClipLayer l{.scope = m.scope};
  l.norm1 = make_layer_norm(c, "layer_norm1", g.hidden);
  {
    Module a(c, "self_attn");
    l.attention = make_projections(c, {.hidden = g.hidden, .qkv_bias = true, .out_bias = true});
  }
  l.norm2 = make_layer_norm(c, "layer_norm2", g.hidden);
  l.mlp = make_mlp(c, g.hidden, g.intermediate, g.activation);
  return l;
}

/// In the order of HunYuanVLVisionPatchMerger.__init__; its own parameters stand before those of its modules.
inline HunYuanMerger make_hunyuan_merger(Context& c, const HunYuanVision& g) {
  Module m(c, "patch_merger");
  HunYuanMerger r{.scope = m.scope};
  const std::int64_t wide = checked_mul(g.hidden, 4);
  r.squares = make_merger_conv(c, "proj_conv", g.hidden, checked_mul(g.hidden, 2), g.merge);
  r.activation_scope = c.b.child("proj_act");
  r.widen = make_merger_conv(c, "proj_out", checked_mul(g.hidden, 2), wide, 1);
  r.mlp = make_linear(c, "mlp", wide, g.out, true);
  r.newline = parameter(c, "image_newline", {wide});
  r.begin = parameter(c, "image_begin", {g.out});
  r.end = parameter(c, "image_end", {g.out});
  parameter(c, "image_sep", {g.out});
  r.before = make_rms_norm(c, "before_rms", g.hidden);
  r.after = make_rms_norm(c, "after_rms", g.out);
  return r;
}

/// In the order of HunYuanVLVisionTransformer.__init__.
inline HunYuanTower make_tower(Context& c, const HunYuanVision& g) {
  HunYuanTower t{.config = &g, .scope = c.b.scope()};
  {
    const std::int64_t side = g.image_size / g.patch_size;
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.positions = make_embedding(c, "position_embedding", checked_add(checked_mul(side, side), 1), g.hidden);
  }
  t.layers = make_layers(g.layers, [&](std::int32_t i) { return make_hunyuan_block(c, g, i); });
  t.merger = make_hunyuan_merger(c, g);
  return t;
}

/// modeling_hunyuan_vl.py, HunYuanVLVisionPatchEmbed.interpolate_pos_encoding: [patches, hidden] for one picture, whose
/// sides, numbers on the GPU, the host reads.
inline Value interpolated_positions(Context& c, const HunYuanTower& t, Grid patches, const Value& rows,
                                    const Value& cols) {
  using namespace eager;
  const HunYuanVision& g = *t.config;
  const std::int64_t side = g.image_size / g.patch_size;
  Value table(c.b, t.positions.weight);
  const DType type = table.dtype();
  table = view(slice(table, 0, 1, side * side + 1), {1, side, side, g.hidden});
  table = to(permute(table, {0, 3, 1, 2}), DType::fp32);
  item(rows);
  item(cols);
  table = g.cubic ? upsample_bicubic2d(table, patches.rows, patches.cols)
                  : upsample_bilinear2d(table, patches.rows, patches.cols);
  return view(to(reshape(permute(table, {0, 2, 3, 1}), {1, -1, g.hidden}), type), {patches.count(), g.hidden});
}

/// modeling_hunyuan_vl.py, HunYuanVLVisionPatchEmbed.forward -> [1, patches, hidden].
inline Value hunyuan_embeddings(Context& c, const HunYuanTower& t, const PackedImages& in,
                                std::span<const ImageLayout> images) {
  using namespace eager;
  const HunYuanVision& g = *t.config;
  InScope scope(c.b, t.embeddings_scope);
  const Value pixels = view(in.pixels, {-1, g.channels, g.patch_size, g.patch_size});
  const Value x = view(input_embedding(c, forward(c, t.patches, pixels)), {in.pixels.size(0), g.hidden});
  std::vector<Value> all;
  Value start, end, part, positions;  // variables of the loop: each lives until it is bound again
  std::int64_t at = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Value row = select(in.grid, 0, static_cast<std::int64_t>(i));
    const Value frames = select(row, 0, 0), rows = select(row, 0, 1), cols = select(row, 0, 2);
    const std::int64_t n = images[i].patches.count();
    {
      Value count = mul(frames, rows);
      count = mul(count, cols);
      end = start ? add(start, count) : add_scalar(count);
    }
    if (start) item(start);
    item(end);
    part = slice(x, 0, at, at + n);
    {
      Value one = interpolated_positions(c, t, images[i].patches, rows, cols);
      item(frames);
      positions = repeat(std::move(one), {1, 1});
    }
    all.push_back(add(part, positions));
    start = end;
    at += n;
  }
  return unsqueeze(cat(all, 0), 0);
}

/// modeling_hunyuan_vl.py, HunYuanVLVisionPatchMerger.forward: x[1, patches, hidden] of one picture -> [1, tokens,
/// out].
inline Value forward(Context& c, const HunYuanMerger& m, const HunYuanVision& g, Value arg, Grid patches) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  const auto convolve = [&](const MergerConv& v, const Value& y, std::int64_t stride) {
    InScope own(c.b, v.scope);
    return conv2d(y, Value(c.b, v.weight), Value(c.b, v.bias), stride);
  };
  x = forward(c, m.before, x);
  x = view(permute(x, {0, 2, 1}), {1, g.hidden, patches.rows, patches.cols});
  x = convolve(m.squares, x, g.merge);
  {
    InScope a(c.b, m.activation_scope);
    x = activate(c, g.activation, x);
  }
  x = convolve(m.widen, x, 1);
  const std::int64_t wide = x.size(1), rows = x.size(2);
  {
    const Value newline = expand(view(Value(c.b, m.newline), {1, wide, 1, 1}), {1, wide, rows, 1});
    x = cat(x, newline, -1);
  }
  x = permute(reshape(x, {1, wide, -1}), {0, 2, 1});
  x = forward(c, m.mlp, x);
  const auto token = [&](TensorId t) { return view(Value(c.b, t), {1, 1, g.out}); };
  std::array<Value, 3> parts{token(m.begin), x, token(m.end)};
  x = cat(parts, 1);
  return forward(c, m.after, x);
}

/// modeling_hunyuan_vl.py, HunYuanVLVisionTransformer.forward: last_hidden_state and pooler_output, the features of all
/// pictures in one row.
inline TowerOutput forward(Context& c, const HunYuanTower& t, const PackedImages& in,
                           std::span<const ImageLayout> images) {
  using namespace eager;
  const HunYuanVision& g = *t.config;
  InScope scope(c.b, t.scope);
  TowerOutput out;
  Value x = hunyuan_embeddings(c, t, in, images);
  const Segments segments = image_segments(c, in.grid, images);
  PackedSiglipStack stack(c);
  for (const ClipLayer& l : t.layers) x = stack(l, x, {.heads = g.heads, .segments = &segments});
  Value counts = reduce("prod.dim_int", DType::int64, {static_cast<std::int64_t>(images.size())}, in.grid);
  to_host(std::move(counts));
  std::vector<std::int64_t> lengths;
  for (const ImageLayout& i : images) lengths.push_back(i.patches.count());
  const std::vector<Value> items = split(x, lengths, 1);
  to_host(in.grid);
  std::vector<Value> merged;
  for (std::size_t i = 0; i < images.size(); ++i)
    merged.push_back(forward(c, t.merger, g, items[i], images[i].patches));
  out.pooled = cat(merged, 1);
  out.last = x;
  return out;
}

}  // namespace vlmest
