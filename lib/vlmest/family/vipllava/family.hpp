// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace vlmest {

/// ViP-LLaVA (transformers models/vipllava): LLaVA with hidden states of several layers side by side, which the
/// projector norms first.
struct VipLlavaFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-2, -5, -8, -11, 6};  ///< vision_feature_layers
  bool layer_list = true;                                        ///< given as a list: the states are concatenated
  bool tied = false;

  static constexpr AssemblyTraits assembly{};
};

/// VipLlavaMultiModalProjector.
struct VipLlavaProjector {
  LayerNorm norm;
  Mlp2 mlp;
};

inline VipLlavaProjector make_projector(Context& c, const VipLlavaFamily& g) {
  VipLlavaProjector p;
  p.norm = make_layer_norm(c, "projector_layernorm", g.projector.in);
  p.mlp = make_projector(c, g.projector);
  return p;
}

constexpr FamilyTraits traits(const VipLlavaFamily&) { return {.features = feature_calls::tensor}; }

using VipLlavaModel = Assembly<VipLlavaFamily>;

inline PixelInputs make_inputs(Context& c, const VipLlavaFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s);
}

/// modeling_vipllava.py, VipLlavaMultiModalProjector.forward: each step rebinds the variable.
inline Value forward(Context& c, const VipLlavaProjector& p, const Value& features) {
  InScope in(c.b, p.mlp.scope);
  Value x = forward(c, p.norm, features);
  x = forward(c, p.mlp.first, x);
  {
    InScope a(c.b, p.mlp.activation_scope);
    x = activate(c, p.mlp.activation, x);
  }
  x = forward(c, p.mlp.second, x);
  return x;
}

/// modeling_vipllava.py, VipLlavaModel.get_image_features: [images, tokens, language width]; the class token goes. All
/// hidden states stay alive until the features are projected.
inline Value image_features(Context& c, const VipLlavaModel& m, const PixelInputs& inputs, const Sequences& s) {
  using namespace eager;
  const VipLlavaFamily& g = *m.config;
  const TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, true, {}, g.feature_layers});
  std::vector<Value> pool;
  for (const std::int64_t layer : g.feature_layers) {
    const Value& h = hidden_state(tower, layer);
    pool.push_back(slice(h, 1, 1, h.size(1)));
  }
  Value selected = g.layer_list ? cat(pool, -1) : pool.front();
  pool.clear();
  selected = insert_after_tower(c, std::move(selected));
  return insert_after_projector(c, forward(c, m.projector, selected), feature_count(s.images));
}

}  // namespace vlmest
