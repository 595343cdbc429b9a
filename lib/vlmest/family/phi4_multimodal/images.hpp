// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/family/phi4_multimodal/tower.hpp>
#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/nn/family/feature_calls.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>

namespace vlmest {

/// transformers 5.17 modeling_phi4_multimodal.py, Phi4MultimodalImageEmbedding: the tower, what averages its features
/// two by two, two separators and a projector.
struct Phi4Images {
  const Phi4Vision* config = nullptr;
  ScopeId scope = 0, pool_scope = 0;
  Phi4Tower tower;
  Linear up, down;
  TensorId between = none;  ///< global_img_feature_extensor, ahead of the whole picture
  TensorId row_end = none;  ///< sub_img_feature_extensor
};

inline Phi4Images make_phi4_images(Context& c, const Phi4Vision& g, std::int64_t width) {
  Module m(c, "image_embed", Part::projector);
  Phi4Images r{.config = &g, .scope = m.scope};
  const std::int64_t hidden = g.patches.hidden;
  {
    Module v(c, "img_processor", Part::vision);
    r.tower = make_tower(c, g);
  }
  r.pool_scope = c.b.child("image_token_compression");
  r.up = make_linear(c, "img_projection_up", hidden, width, true);
  r.down = make_linear(c, "img_projection_down", width, width, true);
  r.between = parameter(c, "global_img_feature_extensor", {1, 1, hidden});
  r.row_end = parameter(c, "sub_img_feature_extensor", {1, 1, 1, hidden});
  return r;
}

/// Crops as rows, pixels[N, 3, H, W], and which of their patches are seen, bool[N, h, w], as many of each row.
struct Phi4Crops {
  Value pixels, seen;
  std::vector<std::int64_t> real;
};
/// Seen patches of the whole picture, of each of its crops row by row, and of as many empty crops, which count as seen,
/// as fill it up to `most` rows.
inline std::vector<std::int64_t> seen_patches(const ImageLayout& l, std::int64_t most) {
  std::vector<std::int64_t> r(static_cast<std::size_t>(most), l.patches.count());
  const auto within = [](std::int64_t seen, std::int64_t at, std::int64_t side) {
    return std::clamp<std::int64_t>(seen - at * side, 0, side);
  };
  for (std::int64_t i = 0; i < l.tile_grid.count(); ++i)
    r[static_cast<std::size_t>(i + 1)] = within(l.unpadded.rows, i / l.tile_grid.cols, l.patches.rows) *
                                         within(l.unpadded.cols, i % l.tile_grid.cols, l.patches.cols);
  return r;
}
/// Rows that each picture of a batch has: those of the one with most crops.
inline std::int64_t phi4_rows(const Sequences& s) {
  std::int64_t most = 0;
  for (const ImageLayout& i : s.images) most = std::max(most, i.tiles);
  return most;
}

/// get_img_features over a few crops at a time.
inline std::string phi4_features_line(const std::string&, std::int64_t n) {
  return feature_calls::wrapped("model.model.embed_tokens_extend.image_embed.get_img_features",
                                "img_embeds, attention_mask",
                                "torch.cat([f(p, m, **k) for p, m in zip(" + feature_calls::split("img_embeds", n) +
                                    ", " + feature_calls::split("attention_mask", n) + ")])");
}
inline constexpr FeatureCall phi4_features{phi4_features_line, true};

inline std::vector<VisionChunk<Phi4Crops>> vision_chunks(const Context& c, const Phi4Crops& in, const Sequences& s) {
  const std::vector<std::int64_t> lengths = chunk_lengths(in.real.size(), c.plan.vision_chunk);
  std::vector<Value> pixels = eager::split(in.pixels, lengths, 0), seen = eager::split(in.seen, lengths, 0);
  std::vector<VisionChunk<Phi4Crops>> r;
  auto at = in.real.begin();
  for (std::size_t i = 0; i < lengths.size(); at += lengths[i++])
    r.push_back({{std::move(pixels[i]), std::move(seen[i]), {at, at + lengths[i]}}, s});
  return r;
}

/// Phi4MultimodalImageEmbedding.get_img_features: [N, 16 * 16, hidden].
inline Value image_features(Context& c, const Phi4Images& m, const Phi4Crops& in, const Sequences&) {
  using namespace eager;
  std::int64_t real = 0;
  for (const std::int64_t n : in.real) real = checked_add(real, n);
  const std::array<std::int64_t, 1> read{m.config->feature_layer};
  const TowerOutput out = forward(c, m.tower,
                                  TowerInput{.pixels = in.pixels,
                                             .images = {},
                                             .keep_hidden_states = true,
                                             .read_states = read,
                                             .gradient_as_result = true},
                                  in.seen, real);
  const auto states = static_cast<std::int64_t>(out.hidden_states.size());
  Value x = out.hidden_states[static_cast<std::size_t>(read[0] < 0 ? read[0] + states : read[0])];
  x = permute(view(x, {-1, in.seen.size(1), in.seen.size(2), x.size(-1)}), {0, 3, 1, 2});
  {
    InScope pool(c.b, m.pool_scope);
    x = avg_pool2d(x, 2);
  }
  x = permute(x, {0, 2, 3, 1});
  return view(x, {-1, x.size(1) * x.size(2), x.size(-1)});
}

/// What the loop over pictures binds anew for each of them.
struct Phi4Picture {
  Value rows, cols, crops, whole, row_ends, parts, mask;
};
/// One picture's features with its separators, [1, tokens, hidden]: of features[pictures, crops, 256, hidden], sizes
/// int64[pictures, 2], mask fp32[pictures, crops, h, w] the ones at `at`. Each count that Python takes for a length is
/// read from the device.
inline Value picture_features(Context& c, const Phi4Images& m, const ImageLayout& l, std::int64_t at,
                              const Value& features, const Value& sizes, const Value& mask, Phi4Picture& p) {
  using namespace eager;
  const std::int64_t side = l.patches.rows / 2, hidden = features.size(-1), rows = l.tile_grid.rows,
                     cols = l.tile_grid.cols;
  const Value height = select(select(sizes, 0, at), 0, 0), width = select(select(sizes, 0, at), 0, 1);
  p.rows = floor_divide(height);
  p.cols = floor_divide(width);
  p.crops = mul(p.rows, p.cols);
  p.whole = slice(select(features, 0, at), 0, 0, 1);
  p.whole = contiguous(reshape(p.whole, {1, side, side, hidden}));
  p.row_ends = repeat(Value(c.b, m.row_end), {1, side, 1, 1});
  p.whole = reshape(cat(p.whole, p.row_ends, 2), {1, -1, hidden});
  p.parts = slice(select(features, 0, at), 0, 1, features.size(1));
  item(p.crops);
  p.parts = slice_view(p.parts, 0, 0, rows * cols);
  item(p.rows);
  item(p.cols);
  {
    const Value apart = transpose(view(p.parts, {rows, cols, side, side, hidden}), 1, 2);
    const Value high = mul_scalar(p.rows), wide = mul_scalar(p.cols);
    item(high);
    item(wide);
    p.parts = reshape(apart, {1, rows * side, cols * side, hidden});
  }
  p.parts = contiguous(p.parts);
  {
    Value places;
    {
      const Value end = add_scalar(p.crops);
      item(end);
      places = slice(select(mask, 0, at), 0, 1, rows * cols + 1);
      places = slice(slice(places, 1, 0, places.size(1), 2), 2, 0, places.size(2), 2);
    }
    item(p.rows);
    item(p.cols);
    places = transpose(reshape(places, {rows, cols, side, side}), 1, 2);
    const Value high = mul_scalar(p.rows), wide = mul_scalar(p.cols);
    item(high);
    item(wide);
    p.mask = reshape(places, {1, rows * side, cols * side});
  }
  item(sum_all(select(select(p.mask, 0, 0), 1, 0)));
  item(sum_all(select(select(p.mask, 0, 0), 0, 0)));
  p.parts = slice(slice(p.parts, 1, 0, l.kept.rows), 2, 0, l.kept.cols);
  p.row_ends = repeat(Value(c.b, m.row_end), {1, l.kept.rows, 1, 1});
  p.parts = reshape(cat(p.parts, p.row_ends, 2), {1, -1, hidden});
  std::array<Value, 3> joined{p.parts, Value(c.b, m.between), p.whole};
  return cat(joined, 1);
}

/// Inputs of the pictures: pixels[pictures, crops, 3, H, W], sizes int64[pictures, 2], mask fp32[pictures, crops, h,
/// w], as the processor makes it.
struct Phi4Pixels {
  Value pixels, sizes, mask;
};

/// Phi4MultimodalImageEmbedding.forward: embeddings with the pictures' features at their placeholders.
inline Value place_pictures(Context& c, const Phi4Images& m, const Value& ids, const Value& embeds,
                            const Phi4Pixels& in, const Sequences& s) {
  using namespace eager;
  InScope scope(c.b, m.scope);
  const auto pictures = static_cast<std::int64_t>(s.images.size());
  Value features;
  {
    Phi4Crops crops{flatten(in.pixels, 0, 1), to(flatten(in.mask, 0, 1), DType::boolean), {}};
    for (const ImageLayout& l : s.images)
      for (const std::int64_t n : seen_patches(l, in.pixels.size(1))) crops.real.push_back(n);
    features = batch_features(c, m, crops, s);
  }
  features = view(features, {pictures, -1, features.size(1), features.size(2)});
  std::vector<Value> joined, projected;
  Phi4Picture p;
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < pictures; ++i) {
    const ImageLayout& l = s.images[static_cast<std::size_t>(i)];
    tokens = checked_add(tokens, l.llm_tokens);
    joined.push_back(picture_features(c, m, l, i, features, in.sizes, in.mask, p));
  }
  Value x;
  for (const Value& one : joined) {
    x = forward(c, m.up, one);
    x = unary(functions::gelu, x);
    x = forward(c, m.down, x);
    projected.push_back(x);
  }
  std::vector<Value> list = projected;
  const Value merged = squeeze(cat(list, 1), 0);
  const Value places = nonzero(compare_scalar("eq.Scalar", ids), tokens);
  return index_put(embeds, select(places, 1, 0), select(places, 1, 1), merged);
}

}  // namespace vlmest
