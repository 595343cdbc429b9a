// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/aya_vision.hpp>

namespace vlmest {

/// Command A Vision (transformers models/cohere2_vision): Aya Vision's parts, of whose tower the last state is taken.
struct Cohere2VisionFamily {
  VisionConfig vision;
  AyaVisionProjectorConfig projector;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{};
};

constexpr FamilyTraits traits(const Cohere2VisionFamily&) { return {.features = feature_calls::tile_tensor}; }

using Cohere2VisionModel = Assembly<Cohere2VisionFamily>;

inline PixelInputs make_inputs(Context& c, const Cohere2VisionFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_cohere2_vision.py, Cohere2VisionModel.get_image_features: features stay rows of tiles.
inline Value image_features(Context& c, const Cohere2VisionModel& m, const PixelInputs& inputs, const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images});
  const Value selected = insert_after_tower(c, tower.last);
  return insert_after_projector(c, eager::flatten(forward(c, m.projector, selected), 1, 2));
}

}  // namespace vlmest
