// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/llava.hpp>
#include <vlmest/nn/family/aya_vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// The projector that joins squares of patches, for a tower of these facts: of Aya Vision and Command A Vision.
/// `intermediate` is what an absent alignment_intermediate_size means.
inline AyaVisionProjectorConfig read_joining_projector(const Reader& r, const TowerFacts& tower, std::int64_t out,
                                                       std::int64_t intermediate) {
  AyaVisionProjectorConfig p{.in = tower.hidden, .out = out};
  p.scale = r.integer("downsample_factor", 2, 1, 1 << 10);
  p.intermediate = r.integer("alignment_intermediate_size", intermediate, 1, 1 << 24);
  if (p.intermediate % 2 != 0) r.fail("alignment_intermediate_size", "must be even: it is split into two halves");
  const std::int64_t side = tower.image_size / tower.patch_size;
  if (side % p.scale != 0)
    r.fail("downsample_factor",
           std::to_string(side) + " patches a side are not divisible by " + std::to_string(p.scale));
  return p;
}

/// model_type "aya_vision": transformers 5.17, models/aya_vision/configuration_aya_vision.py. Its default vision_config
/// asks for 14 heads over 1152 channels, which the tower refuses; so one must be given.
inline Vlm read_aya_vision(const Reader& r) {
  if (!r.given("vision_config"))
    r.fail("vision_config", "missing",
           "the class's default has heads that do not divide its width: give a vision_config");
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  AyaVisionFamily f;
  f.vision = read_tower(v, v.string("model_type", "siglip_vision_model"));
  f.language = read_decoder(t, t.string("model_type", "cohere2"));
  f.tied = r.boolean("tie_word_embeddings", true);
  f.drop_first = read_drop_first(r, "full");

  const TowerFacts g = facts(f.vision);
  const auto chosen = r.integers("vision_feature_layer", {-1});
  if (chosen.size() != 1)
    r.fail("vision_feature_layer", "the projector takes one hidden state, not " + std::to_string(chosen.size()));
  f.feature_layer = chosen.front();
  f.layer_list = r.given("vision_feature_layer") && r.value()["vision_feature_layer"].is_array();
  check_feature_layer(r, f.feature_layer, g.layers);

  f.projector = read_joining_projector(r, g, width(f.language), width(f.language));
  if (g.class_token != f.drop_first)
    r.fail("vision_feature_select_strategy", "what is left of the tower's tokens is no square",
           "\"full\" for a tower without a class token, \"default\" for one that has it");

  Vlm m{.type = "aya_vision"};
  m.tokens = tokens::AyaVision{.image_size = g.image_size, .patch_size = g.patch_size, .merge = f.projector.scale};
  m.native = {g.image_size, g.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf
