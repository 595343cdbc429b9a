// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/aya_vision.hpp>
#include <vlmest/nn/family/cohere2_vision.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "cohere2_vision": transformers 5.17, models/cohere2_vision/configuration_cohere2_vision.py.
inline Vlm read_cohere2_vision(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  Cohere2VisionFamily f;
  f.vision = SiglipVision{.hidden = 1152, .layers = 27, .image_size = 512};
  if (r.given("vision_config")) f.vision = read_tower(v, v.string("model_type", "siglip_vision_model"));
  f.language = read_decoder(t, t.string("model_type", "cohere2"));
  f.tied = r.boolean("tie_word_embeddings", true);

  const TowerFacts g = facts(f.vision);
  if (g.class_token)
    v.fail("model_type", "the tower's tokens are no square: one is a class token", "known: siglip_vision_model");
  f.projector = read_joining_projector(r, g, width(f.language), 36864);
  f.projector.norm = false;

  Vlm m{.type = "cohere2_vision"};
  m.tokens = tokens::Cohere2Vision{.image_size = g.image_size, .patch_size = g.patch_size, .merge = f.projector.scale};
  m.native = {g.image_size, g.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf
