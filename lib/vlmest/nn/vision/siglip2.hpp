// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/resample.hpp>
#include <vlmest/nn/mask.hpp>
#include <vlmest/nn/vision/siglip.hpp>

namespace vlmest {

/// SigLIP 2's tower of pictures in their own aspect ratios (NaFlex; transformers 5.17 models/siglip2,
/// Siglip2VisionModel): rows of flattened patches, each padded to the same number, a table of positions that is resized
/// to each row's grid, SigLIP's layers under a mask, its pooling head.
struct Siglip2Vision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  std::int64_t positions = 256;  ///< num_patches
  Activation activation = Activation::gelu_tanh;
  bool head = true;  ///< vision_use_head
};

struct Siglip2Tower {
  const Siglip2Vision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  Linear patches;
  Embedding positions;
  std::vector<ClipLayer> layers;
  LayerNorm post_norm;
  SiglipHead head;
};

/// In the order of Siglip2VisionModel.__init__.
inline Siglip2Tower make_tower(Context& c, const Siglip2Vision& g) {
  Siglip2Tower t{.config = &g, .scope = c.b.scope()};
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    const std::int64_t values = checked_mul(g.channels, checked_mul(g.patch_size, g.patch_size));
    t.patches = make_linear(c, "patch_embedding", values, g.hidden, true);
    t.positions = make_embedding(c, "position_embedding", g.positions, g.hidden);
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) {
      return make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, true);
    });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  if (g.head) t.head = make_siglip_head(c, g);
  return t;
}

/// The grids of the rows that a batch of pictures becomes: tiles, then the thumbnail.
inline std::vector<Grid> patch_grids(std::span<const ImageLayout> images) {
  std::vector<Grid> r;
  for (const ImageLayout& i : images) {
    const bool thumbnail = i.thumbnail.count() > 0;
    r.insert(r.end(), static_cast<std::size_t>(i.tiles - (thumbnail ? 1 : 0)), i.patches);
    if (thumbnail) r.push_back(i.thumbnail);
  }
  return r;
}

/// pixel_values: rows of as many patches as the processor pads to.
inline Shape pixel_shape(const Siglip2Vision& g, std::span<const ImageLayout> images) {
  for (const ImageLayout& i : images)
    if (i.tower_tokens != images.front().tower_tokens)
      throw Error("image size", "has more patches than those that the processor would put beside it",
                  "use a less extreme aspect ratio, or pictures of one size");
  return {static_cast<std::int64_t>(patch_grids(images).size()), images.front().tower_tokens,
          checked_mul(g.channels, checked_mul(g.patch_size, g.patch_size))};
}

/// Siglip2VisionEmbeddings.resize_positional_embeddings: the table[rows, cols, width] at the size of each grid, and its
/// first place in the padding behind.
inline Value resized_positions(Context& c, Value arg, const Value& shapes, std::span<const Grid> grids,
                               std::int64_t length) {
  using namespace eager;
  Value table = std::move(arg);
  const std::int64_t width = table.size(-1);
  Value all = fill(c.b, "empty.memory_format", {static_cast<std::int64_t>(grids.size()), length, width}, table.dtype());
  table = unsqueeze(permute(table, {2, 0, 1}), 0);
  Value resized;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i), patches = grids[i].count();
    to_host(select(shapes, 0, row));
    resized = upsample_bilinear2d_aa(table, grids[i].rows, grids[i].cols);
    resized = transpose(reshape(resized, {width, patches}), 0, 1);
    resized = to(resized, table.dtype());
    assign(
        all, [row, patches](const Value& v) { return slice(select(v, 0, row), 0, 0, patches); }, resized);
    assign(
        all, [row, patches, length](const Value& v) { return slice(select(v, 0, row), 0, patches, length); },
        expand(unsqueeze(select(resized, 0, 0), 0), {length - patches, width}));
  }
  return all;
}

/// Siglip2VisionEmbeddings.forward: pixels[N, L, values], shapes int64[N, 2] -> [N, L, hidden].
inline Value siglip2_embeddings(Context& c, const Siglip2Tower& t, const Value& pixels, const Value& shapes,
                                std::span<const Grid> grids) {
  using namespace eager;
  InScope in(c.b, t.embeddings_scope);
  const Value patches = input_embedding(c, forward(c, t.patches, pixels));
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(t.config->positions)));
  const Value table = reshape(Value(c.b, t.positions.weight), {side, side, -1});
  const Value positions = resized_positions(c, table, shapes, grids, pixels.size(1));
  return add(patches, positions);
}

/// Siglip2MultiheadAttentionPoolingHead.forward: the padding mask for each head, as an additive one.
inline Value pooling_mask(Context& c, const Siglip2Vision& g, const Value& probe, const Value& real, bool padded) {
  using namespace eager;
  if (!c.stack().makes_masks) return {};
  Value mask = bidirectional_mask(c, to(real, DType::boolean), padded, 1);
  if (!mask) return {};
  const std::int64_t rows = real.size(0), tokens = real.size(1);
  mask = repeat(mask, {1, g.heads, 1, 1});
  mask = reshape(mask, {checked_mul(rows, g.heads), 1, tokens});
  if (mask.dtype() != DType::boolean) return mask;
  Value zero = fill(c.b, "full", Shape{}, probe.dtype());
  Value lowest = fill(c.b, "scalar_tensor", Shape{}, probe.dtype());
  return where(mask, std::move(zero), std::move(lowest));
}

/// Siglip2VisionModel.forward; `real` says which patches are no padding, int32[N, L].
inline TowerOutput forward(Context& c, const Siglip2Tower& t, const Value& pixels, const Value& real,
                           const Value& shapes, std::span<const ImageLayout> images) {
  using namespace eager;
  InScope in(c.b, t.scope);
  const std::vector<Grid> grids = patch_grids(images);
  bool padded = false;
  for (const Grid& g : grids) padded = padded || g.count() < pixels.size(1);
  TowerOutput out;
  const Value embedded = siglip2_embeddings(c, t, pixels, shapes, grids);
  Value mask;
  if (c.stack().makes_masks) mask = bidirectional_mask(c, to(real, DType::boolean), padded);
  const TowerInput called{pixels, images};
  out.last = run_layers(c, t.layers, embedded, 0, called, out,
                        [&](const ClipLayer& l, const Value& h) { return forward(c, l, h, t.config->heads, mask); });
  const Value encoded = out.last;  // the encoder's output lives on beside the normalized one
  out.last = forward(c, t.post_norm, encoded);
  if (t.config->head)
    out.pooled = pool(c, t.head, t.config->heads, out.last,
                      [&](const Value& probe) { return pooling_mask(c, *t.config, probe, real, padded); });
  return out;
}

}  // namespace vlmest
