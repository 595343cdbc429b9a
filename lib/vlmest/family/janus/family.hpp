// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/family/janus/generator.hpp>
#include <vlmest/family/janus/tower.hpp>
#include <vlmest/nn/family/assembly.hpp>

namespace vlmest {

/// Janus (Chen et al., arXiv:2501.17811; transformers models/janus) as it understands pictures: a tower, linear layers,
/// a language model. What makes pictures counts with the tower; it is there and rests.
struct JanusFamily {
  JanusVision vision;
  std::int64_t projection = 2048;  ///< projection_dim, the language model's width
  std::int64_t depth = 2;          ///< linear layers behind the tower
  JanusGenerator generator;
  DecoderConfig language;
  bool tied = true;

  static constexpr AssemblyTraits assembly{.vision = "vision_model", .projector = "aligner"};
};

/// JanusVisionAlignerMLP.
struct JanusAligner {
  ScopeId scope = 0, activation_scope = 0;
  Activation activation = Activation::gelu;
  Linear first;
  std::vector<Linear> rest;
};

inline JanusAligner make_projector(Context& c, const JanusFamily& g) {
  JanusAligner a{.scope = c.b.scope(), .activation = g.vision.activation};
  a.first = make_linear(c, "fc1", g.vision.hidden, g.projection, true);
  for (std::int32_t i = 0; i + 1 < g.depth; ++i)
    a.rest.push_back(make_linear(c, "hidden_layers", g.projection, g.projection, true, i));
  a.activation_scope = c.b.child("activation_fn");
  return a;
}

/// Behind the aligner in JanusModel.__init__.
inline void make_unused(Context& c, const JanusFamily& g) { make_generator(c, g.generator); }

constexpr FamilyTraits traits(const JanusFamily&) { return {.features = feature_calls::tensor}; }

using JanusModel = Assembly<JanusFamily>;

inline PixelInputs make_inputs(Context& c, const JanusFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_janus.py, JanusVisionAlignerMLP.forward.
inline Value forward(Context& c, const JanusAligner& a, const Value& states) {
  InScope in(c.b, a.scope);
  Value x = forward(c, a.first, states);
  for (const Linear& l : a.rest) {
    {
      InScope act(c.b, a.activation_scope);
      x = activate(c, a.activation, x);
    }
    x = forward(c, l, x);
  }
  return x;
}

/// modeling_janus.py, JanusModel.get_image_features, and what its forward makes of it: all pictures' features in a row.
inline Value image_features(Context& c, const JanusModel& m, const PixelInputs& inputs, const Sequences& s) {
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images});
  const Value rows = insert_after_projector(c, forward(c, m.projector, insert_after_tower(c, tower.last)));
  return eager::reshape(rows, {-1, rows.size(-1)});
}

}  // namespace vlmest
