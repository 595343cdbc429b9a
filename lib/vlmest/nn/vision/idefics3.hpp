// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/graph/eager/bucketize.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/vision/clip.hpp>

namespace vlmest {

/// The tower of Idefics2, Idefics3 and SmolVLM (transformers models/idefics3, Idefics3VisionTransformer;
/// models/idefics2, Idefics2VisionTransformer): SigLIP's layers, position embeddings looked up by each patch's place in
/// its picture, a mask of the patches that hold pixels.
struct Idefics3Vision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 16;
  std::int64_t image_size = 224;
  std::int64_t patch_size = 32;
  std::int64_t channels = 3;
  Activation activation = Activation::gelu_tanh;
  bool attention_dropout = false;  ///< in training mode
};

struct Idefics3Tower {
  const Idefics3Vision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  PatchConv patches;
  Embedding positions;
  std::vector<ClipLayer> layers;
  LayerNorm post_norm;
};

inline Idefics3Tower make_tower(Context& c, const Idefics3Vision& g) {
  Idefics3Tower t{.config = &g, .scope = c.b.scope()};
  const std::int64_t side = g.image_size / g.patch_size;
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
    t.positions = make_embedding(c, "position_embedding", checked_mul(side, side), g.hidden);
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) {
      return make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, false);
    });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// Bucket edges of torch.arange(1 / side, 1.0, 1 / side), counted in double precision as torch does.
inline std::int64_t bucket_edges(std::int64_t side) {
  const double step = 1.0 / static_cast<double>(side);
  return static_cast<std::int64_t>(std::ceil((1.0 - step) / step));
}

/// pixel_mask bool[N, H, W] -> bool[N, h, w]: patches in which any pixel counts (modeling_idefics3.py, Idefics3Model.
/// get_image_features; modeling_aria.py, AriaModel._create_patch_attention_mask).
inline Value patches_with_pixels(const Value& mask, std::int64_t patch) {
  using namespace eager;
  const Value grid = unfold(unfold(mask, 1, patch, patch), 2, patch, patch);
  Value inside = count_true(grid, 2);
  return compare_scalar("gt.Scalar", std::move(inside));
}

/// The bucket of every patch of every picture, int64[N, h * w], and what was computed on the way: one function in
/// Python, whose locals are alive until the embeddings are added.
struct PatchPositions {
  Value boundaries, ids, rows, cols, row_step, col_step, row_index, col_index, y, x, row_bucket, col_bucket, flat;
};
/// Each axis' patches at fractions of the picture's own side, sorted into the table's rows (columns).
/// `real` patches of all pictures hold pixels.
inline PatchPositions patch_positions(Context& c, const Idefics3Vision& g, const Value& patches, std::int64_t real) {
  using namespace eager;
  const std::int64_t n = patches.size(0), h = patches.size(1), w = patches.size(2);
  PatchPositions p;
  p.boundaries = fill(c.b, "arange.start_step", {bucket_edges(g.image_size / g.patch_size)}, DType::fp32);
  p.ids = fill(c.b, "full", {n, checked_mul(h, w)}, DType::int64);
  p.rows = sum(select(patches, 2), 1, false);
  p.cols = sum(select(patches, 1), 1, false);
  p.row_step = mul_scalar(pointwise("reciprocal", DType::fp32, p.rows));
  p.col_step = mul_scalar(pointwise("reciprocal", DType::fp32, p.cols));
  p.row_index = fill(c.b, "arange", {h}, DType::fp32);
  p.col_index = fill(c.b, "arange", {w}, DType::fp32);
  p.y = mul(unsqueeze(p.row_index, 0), unsqueeze(p.row_step, 1));
  p.x = mul(unsqueeze(p.col_index, 0), unsqueeze(p.col_step, 1));
  p.y = unary("clamp", p.y);
  p.x = unary("clamp", p.x);
  p.y = to(p.y, c.dtype());
  p.x = to(p.x, c.dtype());
  p.row_bucket = bucketize(p.y, p.boundaries);
  p.col_bucket = bucketize(p.x, p.boundaries);
  Value row_start = mul_scalar(unsqueeze(p.row_bucket, 2));
  p.flat = add(std::move(row_start), unsqueeze(p.col_bucket, 1));
  p.flat = reshape(p.flat, {n, -1});
  Value chosen = masked_index(p.flat, view(patches, {n, -1}), real);
  masked_index_put_(p.ids, view(patches, {n, -1}), std::move(chosen), real);
  return p;
}

/// modeling_idefics3.py, Idefics3VisionEmbeddings.forward: pixels[N, 3, H, W] -> [N, patches, hidden].
inline Value idefics3_embeddings(Context& c, const Idefics3Tower& t, const Value& pixels, const Value& patches,
                                 std::int64_t real) {
  InScope in(c.b, t.embeddings_scope);
  const Value features = patch_sequence(forward(c, t.patches, pixels));
  const PatchPositions places = patch_positions(c, *t.config, patches, real);
  Value positions = forward(c, t.positions, places.ids);
  return input_embedding(c, eager::add(features, std::move(positions)));
}

/// FlashAttention takes the mask of patches as it is and leaves out what is padding (modeling_flash_attention_utils.py,
/// _upad_input).
inline void refuse_unpadded_patches(const Context& c) {
  if (c.stack().makes_masks && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "FlashAttention over pictures with padding, which unpads them, is not modelled",
                "give pictures that need no padding, or plan.attention=sdpa");
}

/// Idefics3VisionTransformer.forward: pixels[N, 3, H, W], patches bool[N, h, w], of which `real` are true, those that
/// hold pixels. `last` is [N, patches, hidden].
inline TowerOutput forward(Context& c, const Idefics3Tower& t, const TowerInput& input, const Value& patches,
                           std::int64_t real) {
  using namespace eager;
  InScope in(c.b, t.scope);
  const std::int64_t n = patches.size(0);
  const bool padded = real < numel(patches.shape()).value();
  if (padded) refuse_unpadded_patches(c);
  TowerOutput out;
  const Value embedded = idefics3_embeddings(c, t, input.pixels, patches, real);
  Value mask;
  if (c.stack().makes_masks) mask = bidirectional_mask(c, view(patches, {n, -1}), padded);
  const Value encoded = run_layers(c, t.layers, embedded, 0, input, out, [&](const ClipLayer& l, const Value& h) {
    return forward(c, l, h, t.config->heads, mask, t.config->attention_dropout);
  });
  out.last = forward(c, t.post_norm, encoded);
  return out;
}
/// Of pictures that are filled with pixels.
inline Value forward(Context& c, const Idefics3Tower& t, const Value& pixels, const Value& patches) {
  return forward(c, t, TowerInput{.pixels = pixels, .images = {}}, patches, numel(patches.shape()).value()).last;
}

}  // namespace vlmest
