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
};

using LlavaOnevisionModel = AnyresModel<LlavaOnevisionFamily>;

inline LlavaOnevisionModel make_model(Context& c, const LlavaOnevisionFamily& g) { return make_anyres_model(c, g); }

inline AnyresInputs make_inputs(Context& c, const LlavaOnevisionFamily& g, const Sequences& s) {
  return make_anyres_inputs(c, g.vision, s);
}

/// modeling_llava_onevision.py, LlavaOnevisionForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const LlavaOnevisionModel& m, const AnyresInputs& in, const Sequences& s,
                     Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    PlaceholderMasks masks;  // variables of the function: alive until it returns
    if (in.pixels) {
      std::vector<Value> parts = anyres_features(c, m, in, s);
      features = cat(parts, 0);
      masks = placeholder_masks(in.text.ids);
      embeds = masked_scatter(embeds, masks.image, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, c.plan.logits));
}

}  // namespace vlmest
