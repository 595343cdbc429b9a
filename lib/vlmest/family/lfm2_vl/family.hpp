// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/lfm2_vl.hpp>
#include <vlmest/nn/vision/siglip2.hpp>

namespace vlmest {

/// LFM2-VL (transformers 5.17 models/lfm2_vl): SigLIP 2's tower over pictures in their own aspect ratios, squares of
/// patches joined and projected picture by picture, a language model of gated short convolutions and attention.
struct Lfm2VlFamily {
  Siglip2Vision vision;
  Lfm2VlProjectorConfig projector;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{};
};

inline std::string lfm2_vl_line(const std::string&, std::int64_t n) {
  using namespace feature_calls;
  return image_features("pixel_values, spatial_shapes, pixel_attention_mask",
                        "[y for p, s, m in zip(" + split("pixel_values", n) + ", " + split("spatial_shapes", n) + ", " +
                            split("pixel_attention_mask", n) +
                            ") for y in f(pixel_values=p, spatial_shapes=s, pixel_attention_mask=m, **k)"
                            ".pooler_output]");
}
constexpr FamilyTraits traits(const Lfm2VlFamily&) { return {.features = FeatureCall{lfm2_vl_line, true}}; }

using Lfm2VlModel = Assembly<Lfm2VlFamily>;

struct Lfm2VlInputs {
  TextInputs text;
  Value pixels;  ///< [rows, patches, values of a patch]
  Value real;    ///< pixel_attention_mask, int32[rows, patches]
  Value shapes;  ///< spatial_shapes, int64[rows, 2]
};

inline Lfm2VlInputs make_inputs(Context& c, const Lfm2VlFamily& g, const Sequences& s) {
  Lfm2VlInputs r;
  if (!s.images.empty()) {
    r.pixels = make_pixels(c, g.vision, s);
    const std::int64_t rows = r.pixels.size(0);
    r.real = c.b.existing("pixel_attention_mask", Role::input, DType::int32, {rows, r.pixels.size(1)});
    r.shapes = c.b.existing("spatial_shapes", Role::input, DType::int64, {rows, 2});
  }
  r.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return r;
}

/// Rows as pictures of their own.
inline std::vector<ImageLayout> single_rows(std::span<const ImageLayout> images) {
  std::vector<ImageLayout> r;
  for (const Grid& g : patch_grids(images)) {
    ImageLayout row = images.front();
    row.tiles = 1;
    row.tile_grid = {1, 1};
    row.patches = g;
    row.thumbnail = {};
    r.push_back(row);
  }
  return r;
}

inline std::vector<VisionChunk<Lfm2VlInputs>> vision_chunks(Context& c, const Lfm2VlInputs& in, const Sequences& s) {
  auto chunks = cut_rows(c, in, s, single_rows(s.images), &Lfm2VlInputs::shapes);
  std::vector<Value> real =
      eager::split(in.real, chunk_lengths(static_cast<std::size_t>(in.real.size(0)), c.plan.vision_chunk), 0);
  for (std::size_t i = 0; i < chunks.size(); ++i) chunks[i].inputs.real = std::move(real[i]);
  return chunks;
}

/// modeling_lfm2_vl.py, Lfm2VlModel.get_image_features: of each row, the patches that are no padding, in their grid,
/// which the host reads number by number.
inline std::vector<Value> image_features(Context& c, const Lfm2VlModel& m, const Lfm2VlInputs& in, const Sequences& s) {
  using namespace eager;
  const TowerOutput tower = forward(c, m.vision, in.pixels, in.real, in.shapes, s.images);
  const std::vector<Grid> grids = patch_grids(s.images);
  const Value lengths = sum(in.real, 1, false);
  std::vector<Value> features;
  Value feature, embedding;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    feature = select(tower.last, 0, row);
    item(select(lengths, 0, row));
    feature = unsqueeze(slice(feature, 0, 0, grids[i].count()), 0);
    for (const Value& side : unbind(select(in.shapes, 0, row), 0)) item(side);
    feature = reshape(feature, {1, grids[i].rows, grids[i].cols, -1});
    embedding = insert_after_projector(c, forward(c, m.projector, feature));
    embedding = reshape(embedding, {-1, embedding.size(-1)});
    features.push_back(embedding);
  }
  return features;
}

}  // namespace vlmest
