// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/aya_vision.hpp>

namespace vlmest {

/// Aya Vision (transformers models/aya_vision): tower, gated projector over joined patches, features scattered into the
/// embeddings of a Cohere decoder.
struct AyaVisionFamily {
  VisionConfig vision;
  AyaVisionProjectorConfig projector;
  DecoderConfig language;
  std::int64_t feature_layer = -1;  ///< hidden state that is used
  bool layer_list = false;          ///< given as a list of one: it is concatenated, which copies it
  bool drop_first = false;          ///< vision_feature_select_strategy "default"
  bool tied = true;

  static constexpr AssemblyTraits assembly{};
};

constexpr FamilyTraits traits(const AyaVisionFamily&) { return {.features = feature_calls::tile_tensor}; }

using AyaVisionModel = Assembly<AyaVisionFamily>;

inline PixelInputs make_inputs(Context& c, const AyaVisionFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_aya_vision.py, AyaVisionModel.get_image_features: all hidden states stay alive until the features are
/// projected.
inline Value image_features(Context& c, const AyaVisionModel& m, const PixelInputs& inputs, const Sequences& s) {
  using namespace eager;
  const AyaVisionFamily& g = *m.config;
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, true});
  Value selected = hidden_state(tower, g.feature_layer);
  if (g.drop_first) selected = slice(selected, 1, 1, selected.size(1));
  if (g.layer_list) selected = cat(std::span<Value>(&selected, 1), -1);
  selected = insert_after_tower(c, std::move(selected));
  return insert_after_projector(c, flatten(forward(c, m.projector, selected), 1, 2));
}

}  // namespace vlmest
