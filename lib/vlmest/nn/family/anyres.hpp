// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

/// What LLaVA-NeXT and LLaVA-OneVision share: pictures arrive as tiles, and each picture's features are put back into
/// one image, cut to what is not padding and closed with a newline feature per row. `Family` is the config of either.
namespace vlmest {

struct AnyresInputs {
  TextInputs text;
  Value pixels;  ///< [images, tiles of the largest, channels, side, side]: shorter pictures are padded with empty tiles
  Value sizes;   ///< image_sizes, int64[images, 2]
  Value counts;  ///< batch_num_images, int64[B]; only where pictures of one prompt stay untiled because of it
  Value videos;  ///< pixel_values_videos [videos, frames, channels, side, side]; LLaVA-OneVision alone
  std::int64_t each = 0;  ///< pictures of a prompt
};

inline AnyresInputs make_anyres_inputs(Context& c, const VisionConfig& vision, const Sequences& s) {
  AnyresInputs r;
  const auto images = static_cast<std::int64_t>(s.images.size());
  r.each = images / s.batch;
  if (images > 0) {
    std::int64_t most = 0;
    bool untiled = false;
    for (const auto& i : s.images) {
      most = std::max(most, i.tiles);
      untiled = untiled || i.tiles == 1;
    }
    r.pixels = std::visit(
        [&](const auto& v) {
          const Shape shape{images, most, v.channels, v.image_size, v.image_size};
          return c.b.existing("pixel_values", Role::input, c.dtype(), shape);
        },
        vision);
    r.sizes = c.b.existing("image_sizes", Role::input, DType::int64, {images, 2});
    if (untiled) r.counts = c.b.existing("batch_num_images", Role::input, DType::int64, {s.batch});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// Pictures with all their tiles.
inline std::vector<VisionChunk<AnyresInputs>> vision_chunks(Context& c, const AnyresInputs& in, const Sequences& s) {
  return cut_rows(c, in, s, s.images, &AnyresInputs::sizes);
}

/// The rows or columns that show the picture, in the middle of features[channels, rows, cols] (unpad_image).
inline Value unpad(Value features, Grid to) {
  const std::int64_t rows = features.size(1), cols = features.size(2);
  if (to.rows < rows) return eager::slice(std::move(features), 1, (rows - to.rows) / 2, (rows - to.rows) / 2 + to.rows);
  return eager::slice(std::move(features), 2, (cols - to.cols) / 2, (cols - to.cols) / 2 + to.cols);
}

/// One round of pack_image_features: features[tiles, tokens, width] -> [llm_tokens, width]. The canvas is looked up
/// from the picture's size, which the host reads twice. Only LLaVA-OneVision's rule shrinks and leaves pictures
/// untiled.
inline Value pack_features(Value newline, const Value& features, const Value& size, const ImageLayout& l) {
  using namespace eager;
  if (l.tiles == 1) {
    Value x = select(features, 0, 0);
    return cat(x, to(unsqueeze(std::move(newline), 0), x.dtype()), 0);
  }
  Value base = select(features, 0, 0);
  Value x = slice(features, 0, 1, features.size(0));
  to_host(size);
  const Grid tile = feature_grid(l);
  x = view(x, {l.tile_grid.rows, l.tile_grid.cols, tile.rows, tile.cols, -1});
  x = contiguous(permute(x, {4, 0, 2, 1, 3}));
  x = flatten(flatten(x, 1, 2), 2, 3);
  to_host(size);
  x = unpad(x, l.unpadded);
  if (!(l.kept == l.unpadded)) {
    x = unsqueeze(x, 0);
    x = select(upsample_bilinear2d(x, l.kept.rows, l.kept.cols), 0, 0);
  }
  Value column = expand(unsqueeze(unsqueeze(std::move(newline), 1), 2), {x.size(0), x.size(1), 1});
  column = to(std::move(column), x.dtype());
  x = cat(x, std::move(column), -1);
  x = transpose(flatten(x, 1, 2), 0, 1);
  return cat(base, x, 0);
}

/// Which pictures are tiled, asked of batch_num_images on the device: one count and one comparison per sequence and
/// picture, `each` of them (modeling_llava_onevision.py, get_image_features, need_patching).
inline std::vector<Value> tiled_flags(const Value& counts, std::int64_t each) {
  using namespace eager;
  std::vector<Value> flags;
  for (const Value& n : unbind(counts, 0)) {
    item(n);
    for (std::int64_t i = 0; i < each; ++i) flags.push_back(compare_scalar("eq.Scalar", n));
  }
  return flags;
}

/// modeling_llava_next.py, LlavaNextModel.get_image_features, and its twin in modeling_llava_onevision.py: the features
/// of each picture. All hidden states of the tower stay alive to the end.
template <class Family>
std::vector<Value> image_features(Context& c, const Assembly<Family>& m, const AnyresInputs& in, const Sequences& s) {
  using namespace eager;
  const Family& g = *m.config;
  const std::size_t n = s.images.size();
  std::vector<Value> flags;
  if (in.counts) flags = tiled_flags(in.counts, in.each);
  const std::vector<Value> sizes = unbind(in.sizes, 0);
  std::vector<std::int64_t> tiles;
  std::vector<Value> cut;
  for (std::size_t i = 0; i < n; ++i) {
    tiles.push_back(s.images[i].tiles);
    if (!flags.empty()) item(flags[i]);
    if (tiles[i] > 1) to_host(sizes[i]);
    cut.push_back(slice(select(in.pixels, 0, static_cast<std::int64_t>(i)), 0, 0, tiles[i]));
  }
  const Value pixels = cat(cut, 0);
  const TowerOutput tower = forward(c, m.vision, {pixels, s.images, true, {}, g.feature_layers});
  Value selected;
  if (g.layer_list) {
    std::vector<Value> pool;
    for (auto l : g.feature_layers) pool.push_back(hidden_state(tower, l));
    selected = cat(pool, -1);
  } else {
    selected = hidden_state(tower, g.feature_layers.front());
  }
  if (g.drop_first) selected = slice(selected, 1, 1, selected.size(1));
  selected = insert_after_tower(c, std::move(selected));
  const std::vector<Value> features = split(insert_after_projector(c, forward(c, m.projector, selected)), tiles, 0);
  std::vector<Value> packed;
  for (std::size_t i = 0; i < n; ++i)
    packed.push_back(pack_features(Value(c.b, m.newline), features[i], sizes[i], s.images[i]));
  const Value lengths = from_host(c.b, {static_cast<std::int64_t>(n)}, DType::int64);
  return packed;
}

}  // namespace vlmest
