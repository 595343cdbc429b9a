// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/family/moondream/blocks.hpp>
#include <vlmest/family/moondream/config.hpp>
#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/stack/attention.hpp>

/// Moondream 2's tower and projection (moondream/torch/vision.py): SigLIP's layers over patches that a linear layer
/// embeds; the crops' features are put together again, pooled to one square and set beside the whole picture's.
namespace vlmest::moondream {

struct VisionBlock {
  ScopeId scope = 0;
  LayerNorm norm1, norm2;
  Pair attention, mlp;
};

struct Vision {
  const MoondreamVision* config = nullptr;
  ScopeId scope = 0;
  Linear patch_emb;
  std::vector<VisionBlock> blocks;
  LayerNorm post_norm;
  Pair projection;
  TensorId positions = none;
};

/// build_vision_model, in its order; `out` is the language model's width.
inline Vision make_vision(Context& c, const MoondreamVision& g, std::int64_t out) {
  Module m(c, "vision", Part::vision);
  Vision v{.config = &g, .scope = m.scope};
  v.patch_emb = make_linear(c, "patch_emb", g.patch_size * g.patch_size * g.channels, g.hidden, true);
  v.blocks = make_layers(g.side, [&](std::int32_t i) {
    Module block(c, "blocks", i);
    VisionBlock b{.scope = block.scope};
    b.norm1 = make_layer_norm(c, "ln1", g.hidden);
    b.attention = make_attention(c, g.hidden, checked_mul(3, g.hidden));
    b.norm2 = make_layer_norm(c, "ln2", g.hidden);
    b.mlp = make_mlp(c, "mlp", g.hidden, g.intermediate, g.hidden);
    return b;
  });
  v.post_norm = make_layer_norm(c, "post_ln", g.hidden);
  v.projection = make_mlp(c, "proj_mlp", checked_mul(2, g.hidden), g.inner, out);
  v.positions = parameter(c, "pos_emb", {1, g.patches, g.hidden});
  return v;
}

/// vision.py, prepare_crops: bytes become bf16 on the device, which in-place steps bring to -1 .. 1.
inline Value prepare_crops(Context& c, std::int64_t crops) {
  using namespace eager;
  constexpr std::int64_t side = MoondreamVision::side * MoondreamVision::patch_size;
  Value all = from_host(c.b, {crops, MoondreamVision::channels, side, side}, DType::bf16, "_to_copy");
  for (const char* step : {"div_.Tensor", "sub_.Tensor", "div_.Tensor"}) all = pointwise_(step, std::move(all));
  return all;
}

/// layers.py, attn: one product of which q, k and v are views.
inline Value self_attention(Context& c, const MoondreamVision& g, const Pair& a, Value arg) {
  using namespace eager;
  const Value x = std::move(arg);
  InScope in(c.b, a.scope);
  const std::int64_t head_dim = g.hidden / g.heads;
  Value q, k, v;
  {
    const std::array<std::int64_t, 3> parts{g.hidden, g.hidden, g.hidden};
    const auto qkv = split(linear(x, Value(c.b, a.in.weight), Value(c.b, a.in.bias)), parts, -1);
    q = heads(qkv[0], head_dim);
    k = heads(qkv[1], head_dim);
    v = heads(qkv[2], head_dim);
  }
  Value out = stacks::attend(c, {.q = q, .k = k, .v = v}).out;
  out = reshape(std::move(out), {x.size(0), x.size(1), g.hidden});
  out = linear(out, Value(c.b, a.out.weight), Value(c.b, a.out.bias));
  return out;
}

/// One turn of vision_encoder's loop, which rebinds its variable in the midst of a block.
inline void run_block(Context& c, const MoondreamVision& g, const VisionBlock& b, Value& x) {
  using namespace eager;
  InScope in(c.b, b.scope);
  Value y = self_attention(c, g, b.attention, forward(c, b.norm1, x));
  x = add(x, std::move(y));
  y = forward_mlp(c, b.mlp, forward(c, b.norm2, x));
  x = add(x, std::move(y));
}

/// vision.py, create_patches and vision_encoder: crops[N, 3, 378, 378] -> [N, 729, hidden].
inline Value encode(Context& c, const Vision& v, const Value& crops) {
  using namespace eager;
  const MoondreamVision& g = *v.config;
  InScope in(c.b, v.scope);
  const std::int64_t n = crops.size(0);
  Value x = reshape(crops, {n, g.channels, g.side, g.patch_size, g.side, g.patch_size});
  x = permute(x, {0, 2, 4, 1, 3, 5});
  x = reshape(x, {n, g.patches, g.channels * g.patch_size * g.patch_size});
  x = forward(c, v.patch_emb, x);
  x = add(x, Value(c.b, v.positions));
  // The loop's variable is a state of the layers: as their input it would live until they return.
  LayerRepeater repeat(c.b);
  const Value none_read(c.b, v.positions);
  const std::array<Value*, 1> state{&x};
  for (const VisionBlock& b : v.blocks)
    repeat({0, b.scope, b.norm1.weight}, none_read, state, [&](const Value&) {
      run_block(c, g, b, x);
      return x;
    });
  x = forward(c, v.post_norm, x);
  return x;
}

/// image_crops.py, reconstruct_from_crops with patches as pixels: of each crop [27, 27, hidden] what lies inside its
/// margins, at the picture's edge with them -> [rows, columns, hidden].
inline Value reconstruct(Context& c, const MoondreamVision& g, const Value& crops, Grid tiling) {
  using namespace eager;
  const std::int64_t window = g.side - 2 * g.margin;
  Value whole = fill(c.b, "zeros", {tiling.rows * window + 2 * g.margin, tiling.cols * window + 2 * g.margin, g.hidden},
                     DType::bf16);
  const auto begin = [&](std::int64_t at) { return at == 0 ? 0 : g.margin; };
  const auto end = [&](std::int64_t at, std::int64_t of) { return at == of - 1 ? g.side : g.side - g.margin; };
  for (std::int64_t i = 0; i < tiling.count(); ++i) {
    const std::int64_t row = i / tiling.cols, col = i % tiling.cols;
    const std::int64_t y0 = begin(row), y1 = end(row, tiling.rows), x0 = begin(col), x1 = end(col, tiling.cols);
    Value part = slice(slice(select(crops, 0, i), 0, y0, y1), 1, x0, x1);
    Value place = slice(slice(whole, 0, row * window + y0, row * window + y1), 1, col * window + x0, col * window + x1);
    copy_over(std::move(place), std::move(part));
  }
  return whole;
}

/// vision.py, vision_projection: whole-picture features[729, hidden] and reconstructed ones -> [729, width].
inline Value project(Context& c, const Vision& v, const Value& whole, Value arg) {
  using namespace eager;
  const MoondreamVision& g = *v.config;
  InScope in(c.b, v.scope);
  Value reconstructed = permute(std::move(arg), {2, 0, 1});
  reconstructed = adaptive_avg_pool2d(reconstructed, g.side, g.side);
  reconstructed = view(permute(reconstructed, {1, 2, 0}), {g.patches, g.hidden});
  const Value features = cat(whole, reconstructed, -1);
  return forward_mlp(c, v.projection, features);
}

/// moondream.py, MoondreamModel._run_vision_encoder.
inline Value image_features(Context& c, const Vision& v, const ImageLayout& image) {
  using namespace eager;
  const MoondreamVision& g = *v.config;
  const Value crops = prepare_crops(c, image.tiles);
  const Value outputs = encode(c, v, crops);
  const Value whole = select(outputs, 0, 0);
  const Value local = view(slice(outputs, 0, 1, image.tiles), {-1, g.side, g.side, g.hidden});
  const Value reconstructed = reconstruct(c, g, local, image.tile_grid);
  return project(c, v, whole, reconstructed);
}

}  // namespace vlmest::moondream
