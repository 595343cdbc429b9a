// SPDX-License-Identifier: Apache-2.0
#pragma once

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
};

using LlavaNextModel = AnyresModel<LlavaNextFamily>;

inline LlavaNextModel make_model(Context& c, const LlavaNextFamily& g) { return make_anyres_model(c, g); }

inline AnyresInputs make_inputs(Context& c, const LlavaNextFamily& g, const Sequences& s) {
  return make_anyres_inputs(c, g.vision, s);
}

/// modeling_llava_next.py, LlavaNextForConditionalGeneration.forward over a fresh cache.
inline Value prefill(Context& c, const LlavaNextModel& m, const AnyresInputs& in, const Sequences& s, Cache& cache) {
  using namespace eager;
  Value hidden, features;  // the output carries the image features
  {
    InScope scope(c.b, m.model);
    Value embeds = embed(c, m.language, in.text.ids);
    Value mask;  // a variable of the function: alive until it returns
    if (in.pixels) {
      std::vector<Value> parts = anyres_features(c, m, in, s);
      features = cat(parts, 0);
      mask = placeholder_mask(c, in.text.ids);
      embeds = masked_scatter(embeds, mask, features);
    }
    hidden = forward(c, m.language, embeds, in.text.mask, cache);
  }
  return forward(c, m.head, kept_positions(hidden, c.plan.logits));
}

}  // namespace vlmest
