// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/anyres.hpp>

namespace vlmest {

/// LLaVA-OneVision (transformers models/llava_onevision) on pictures; videos have inputs of their own.
struct LlavaOnevisionFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-1};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = false;                       ///< vision_feature_select_strategy "default"
  bool tied = false;

  static constexpr AssemblyTraits assembly{.newline = "image_newline", .takes_videos = true};
};

constexpr FamilyTraits traits(const LlavaOnevisionFamily&) { return {.features = feature_calls::sized_images}; }

inline AnyresInputs make_inputs(Context& c, const LlavaOnevisionFamily& g, const Sequences& s) {
  return make_anyres_inputs(c, g.vision, s);
}

}  // namespace vlmest
