// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <vlmest/nn/family/assembly.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace vlmest {

/// LLaVA-1.5 and what follows its assembly (transformers models/llava): tower, projector, features scattered into the
/// embeddings.
struct LlavaFamily {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers{-2};  ///< vision_feature_layer
  bool layer_list = false;                       ///< given as a list: the states are concatenated, one or many
  bool drop_first = true;                        ///< vision_feature_select_strategy "default"
  bool tied = false;

  static constexpr AssemblyTraits assembly{};
};

inline FamilyTraits traits(const LlavaFamily& g) {
  return {.features = takes_image_sizes(g.vision) ? feature_calls::sized_images : feature_calls::images};
}

using LlavaModel = Assembly<LlavaFamily>;

inline PixelInputs make_inputs(Context& c, const LlavaFamily& g, const Sequences& s) {
  return make_pixel_inputs(c, g.vision, s, takes_image_sizes(g.vision));
}

/// modeling_llava.py, LlavaModel.get_image_features: all hidden states stay alive until the features are taken out.
inline std::vector<Value> image_features(Context& c, const LlavaModel& m, const PixelInputs& inputs,
                                         const Sequences& s) {
  using namespace eager;
  const LlavaFamily& g = *m.config;
  TowerOutput tower = forward(c, m.vision, {inputs.pixels, s.images, true, inputs.image_sizes, g.feature_layers});
  auto pick = [&](std::int64_t layer) {
    const Value& h = hidden_state(tower, layer);
    return g.drop_first ? slice(h, 1, 1, h.size(1)) : h;
  };
  Value selected;
  if (!g.layer_list) {
    selected = pick(g.feature_layers.front());
  } else {
    std::vector<Value> pool;
    for (auto l : g.feature_layers) pool.push_back(pick(l));
    selected = cat(pool, -1);
  }
  selected = insert_after_tower(c, std::move(selected));
  Value features = insert_after_projector(c, forward(c, m.projector, selected), feature_count(s.images));
  if (!inputs.image_sizes) return unbind(std::move(features), 0);
  return split_by_image(squeeze(std::move(features), 0), inputs.image_sizes, s.images);
}

}  // namespace vlmest
