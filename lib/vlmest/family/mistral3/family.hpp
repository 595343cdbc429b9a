// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mistral3.hpp>

namespace vlmest {

/// Mistral Small 3.1 and its kin (transformers models/mistral3): a Pixtral tower, patches merged before the projector,
/// features scattered into the embeddings.
struct Mistral3Family {
  PixtralVision vision;
  Mistral3Projector projector;
  DecoderConfig language;
  std::int64_t feature_layer = -1;  ///< the hidden state that is used
  bool tied = true;

  static constexpr AssemblyTraits assembly{};
};

constexpr FamilyTraits traits(const Mistral3Family&) { return {.features = feature_calls::sized_images}; }

using Mistral3Model = Assembly<Mistral3Family>;

inline PixelInputs make_inputs(Context& c, const Mistral3Family& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s, true);
}

/// modeling_mistral3.py, Mistral3Model.get_image_features: all hidden states stay alive until the features are taken
/// out.
inline std::vector<Value> image_features(Context& c, const Mistral3Model& m, const PixelInputs& inputs,
                                         const Sequences& s) {
  using namespace eager;
  TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, true, inputs.image_sizes});
  const Value& selected = hidden_state(tower, m.config->feature_layer);
  Value features = forward(c, m.projector, squeeze(selected, 0), inputs.image_sizes, s.images);
  return split_by_image(std::move(features), inputs.image_sizes, s.images);
}

}  // namespace vlmest
