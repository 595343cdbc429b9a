// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace vlmest {

/// DeepSeek-VL without its second tower (transformers models/deepseek_vl): SigLIP, two linear layers, a language model.
struct DeepseekVlFamily {
  SiglipVision vision;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.vision = "vision_model", .projector = "aligner"};
};

/// DeepseekVLAligner.__init__.
inline Mlp2 make_projector(Context& c, const DeepseekVlFamily& g) {
  Mlp2 p{.scope = c.b.scope()};
  const std::int64_t out = width(g.language);
  p.first = make_linear(c, "linear1", g.vision.hidden, out, true);
  p.activation_scope = c.b.child("activation");
  p.second = make_linear(c, "linear2", out, out, true);
  return p;
}

constexpr FamilyTraits traits(const DeepseekVlFamily&) { return {.features = feature_calls::tensor}; }

using DeepseekVlModel = Assembly<DeepseekVlFamily>;

inline PixelInputs make_inputs(Context& c, const DeepseekVlFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_deepseek_vl.py, DeepseekVLModel.get_image_features, and what its forward makes of it: all pictures'
/// features in a row.
inline Value image_features(Context& c, const DeepseekVlModel& m, const PixelInputs& inputs, const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images});
  const Value rows = insert_after_projector(c, forward(c, m.projector, insert_after_tower(c, tower.last)));
  return eager::reshape(rows, {-1, rows.size(-1)});
}

}  // namespace vlmest
