// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/family/anyres.hpp>

namespace vlmest {

/// LLaVA-NeXT, also called LLaVA-1.6 (transformers models/llava_next).
struct LlavaNextFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-2};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = true;                        ///< vision_feature_select_strategy "default"
  bool tied = false;

  static constexpr AssemblyTraits assembly{.newline = "image_newline"};
};

constexpr FamilyTraits traits(const LlavaNextFamily&) { return {.features = feature_calls::sized_images}; }

inline AnyresInputs make_inputs(Context& c, const LlavaNextFamily& g, const Sequences& s) {
  return make_anyres_inputs(c, g.vision, s);
}

}  // namespace vlmest
