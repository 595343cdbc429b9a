// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mistral3.hpp>

namespace vlmest {

/// LightOnOCR (transformers models/lighton_ocr): Mistral 3's parts under other names, of whose tower the last state is
/// taken.
struct LightOnOcrFamily {
  PixtralVision vision;
  Mistral3Projector projector;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.vision = "vision_encoder", .projector = "vision_projection"};
};

constexpr FamilyTraits traits(const LightOnOcrFamily&) { return {.features = feature_calls::sized_images}; }

using LightOnOcrModel = Assembly<LightOnOcrFamily>;

inline PixelInputs make_inputs(Context& c, const LightOnOcrFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s, true);
}

/// Features of all images in one row, cut into those of each: the counts are made one by one on the GPU, where the
/// sizes are, and read there by the split.
inline std::vector<Value> split_one_by_one(Value features, const Value& image_sizes,
                                           std::span<const ImageLayout> images) {
  using namespace eager;
  std::vector<Value> counts;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Value rows = unary("floor_divide", select(select(image_sizes, 0), 0));
    const Value columns = unary("floor_divide", select(select(image_sizes, 0), 0));
    counts.push_back(mul(rows, columns));
  }
  for (const Value& n : counts) item(n);
  return split(std::move(features), feature_counts(images), 0);
}

/// modeling_lighton_ocr.py, LightOnOcrModel.get_image_features.
inline std::vector<Value> image_features(Context& c, const LightOnOcrModel& m, const PixelInputs& inputs,
                                         const Sequences& s) {
  using namespace eager;
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, false, inputs.image_sizes});
  const Value selected = insert_after_tower(c, tower.last);
  Value features = forward(c, m.projector, squeeze(selected, 0), inputs.image_sizes, s.images);
  return split_one_by_one(std::move(features), inputs.image_sizes, s.images);
}

}  // namespace vlmest
