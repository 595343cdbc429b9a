// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include <vlmest/graph/eager/resample.hpp>
#include <vlmest/nn/vision/packed_siglip.hpp>
#include <vlmest/nn/vision/tower_io.hpp>

namespace vlmest {

/// VideoLLaMA 3's vision transformer (transformers models/video_llama_3, VideoLlama3VisionModel): SigLIP over the
/// packed patches of pictures in their own sizes, queries and keys turned by row and column, no table of positions,
/// results shrunk bilinearly. Defaults: VideoLlama3VisionConfig.
struct VideoLlama3Vision {
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t patch_size = 16;
  std::int64_t channels = 3;
  Activation activation = Activation::gelu_tanh;
};

struct VideoLlama3Tower {
  const VideoLlama3Vision* config = nullptr;
  ScopeId scope = 0, embeddings_scope = 0;
  AxialRope rope;
  PatchConv patches;
  std::vector<ClipLayer> layers;
  LayerNorm post_norm;
};

/// In the order of VideoLlama3VisionModel.__init__.
inline VideoLlama3Tower make_tower(Context& c, const VideoLlama3Vision& g) {
  VideoLlama3Tower t{.config = &g, .scope = c.b.scope()};
  t.rope = make_axial_rope(c, "rotary_pos_emb", g.hidden / g.heads);
  {
    Module e(c, "embeddings");
    t.embeddings_scope = e.scope;
    t.patches = make_patch_conv(c, "patch_embedding", g, true);
  }
  {
    Module e(c, "encoder");
    t.layers = make_layers(g.layers, [&](std::int32_t i) {
      return make_siglip_layer(c, g.hidden, g.intermediate, g.activation, i, true);
    });
  }
  t.post_norm = make_layer_norm(c, "post_layernorm", g.hidden);
  return t;
}

/// Pixels[patches, taps], image_grid_thw[N, 3] and image_merge_sizes[N].
struct MergedImages {
  PackedImages packed;
  Value merges;
};

/// modeling_video_llama_3.py, VideoLlama3VisionModel.pixel_unshuffle: each picture's rows laid out as they stand in it
/// and shrunk by `merge`; the sides are numbers on the GPU, which the host reads where they shape something.
inline Value shrink_rows(const Value& x, const MergedImages& in, std::span<const ImageLayout> images,
                         std::int64_t merge) {
  using namespace eager;
  const std::int64_t width = x.size(1);
  std::vector<std::int64_t> patches;
  for (const ImageLayout& i : images) patches.push_back(checked_mul(i.patches.count(), i.frames));
  Value counts = reduce("prod.dim_int", DType::int64, {static_cast<std::int64_t>(images.size())}, in.packed.grid);
  to_host(std::move(counts));
  const std::vector<Value> chunks = split(x, patches, 0);
  std::vector<Value> all;
  Value y;  // a variable of the loop: alive until it is bound again
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const Value row = select(in.packed.grid, 0, at), side = select(in.merges, 0, at);
    const Value frames = select(row, 0, 0), rows = select(row, 0, 1), cols = select(row, 0, 2);
    const Grid whole = images[i].patches, less{whole.rows / merge, whole.cols / merge};
    const auto shrunk = [&](const Value& n) { return pointwise("floor_divide", DType::int64, n, side); };
    y = chunks[i];
    {
      const Value r = shrunk(rows), k = shrunk(cols);
      for (const Value* n : std::array{&frames, &r, &k, &side, &side}) item(*n);
      y = permute(view(y, {images[i].frames, less.rows, less.cols, merge, merge, width}), {0, 1, 3, 2, 4, 5});
    }
    for (const Value* n : std::array{&frames, &rows, &cols}) item(*n);
    y = permute(reshape(y, {images[i].frames, whole.rows, whole.cols, width}), {0, 3, 1, 2});
    {
      const Value r = shrunk(rows), k = shrunk(cols);
      item(r);
      item(k);
      y = upsample_bilinear2d(y, less.rows, less.cols);
    }
    y = view(permute(y, {0, 2, 3, 1}), {-1, width});
    all.push_back(y);
  }
  return cat(all, 0);
}

/// modeling_video_llama_3.py, VideoLlama3VisionModel.forward -> last_hidden_state[patches / merge^2, hidden].
inline Value forward(Context& c, const VideoLlama3Tower& t, const MergedImages& in, std::span<const ImageLayout> images,
                     std::int64_t merge) {
  using namespace eager;
  const VideoLlama3Vision& g = *t.config;
  InScope scope(c.b, t.scope);
  const Value position_ids = vision_position_ids(c, in.packed.grid, in.merges, images, merge);
  const Segments segments = image_segments(c, in.packed.grid, images);
  Value x;
  {
    InScope e(c.b, t.embeddings_scope);
    const Value pixels = view(in.packed.pixels, {-1, g.channels, g.patch_size, g.patch_size});
    x = view(input_embedding(c, forward(c, t.patches, pixels)), {-1, g.hidden});
  }
  const CosSin positions = forward(c, t.rope, position_ids);
  PackedSiglipStack stack(c);
  Value hidden = x;  // a variable of the encoder's forward; the tower keeps the embeddings
  for (const ClipLayer& l : t.layers)
    hidden = stack(l, hidden, {.heads = g.heads, .segments = &segments, .positions = &positions});
  Value last = hidden;
  last = forward(c, t.post_norm, last);
  last = shrink_rows(last, in, images, merge);
  return last;
}

}  // namespace vlmest
