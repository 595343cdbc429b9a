// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include <vlmest/family/fast_vlm/tower.hpp>
#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace vlmest {

/// FastVLM (transformers 5.17 models/fast_vlm): LLaVA's assembly behind a tower of convolutions.
struct FastVlmFamily {
  FastVitVision vision;
  Mlp2Projector projector;
  DecoderConfig language;
  bool tied = false;

  static constexpr AssemblyTraits assembly{};
};

constexpr FamilyTraits traits(const FastVlmFamily&) { return {.features = feature_calls::images}; }

using FastVlmModel = Assembly<FastVlmFamily>;

inline PixelInputs make_inputs(Context& c, const FastVlmFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_fast_vlm.py, FastVlmModel.get_image_features: the tower's map and its means live until features take the
/// means' place.
inline std::vector<Value> image_features(Context& c, const FastVlmModel& m, const PixelInputs& inputs,
                                         const Sequences& s) {
  using namespace eager;
  const FastVitOutput tower = forward(c, m.vision, inputs.pixels);
  Value selected = insert_after_tower(c, permute(flatten(tower.map, 2, 3), {0, 2, 1}));
  Value features = insert_after_projector(c, forward(c, m.projector, selected), feature_count(s.images));
  return unbind(std::move(features), 0);
}

}  // namespace vlmest
