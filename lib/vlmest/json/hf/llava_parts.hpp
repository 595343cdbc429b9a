// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>
#include <vector>

#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/tower_facts.hpp>
#include <vlmest/nn/projector/mlp2.hpp>

namespace vlmest::json::hf {

/// What LLaVA and its relatives have in common.
struct LlavaParts {
  VisionConfig vision;
  Mlp2Projector projector;
  DecoderConfig language;
  std::vector<std::int64_t> feature_layers;
  bool layer_list = false, drop_first = false, tied = false;
};

/// As the config of a family of theirs.
template <class Family>
Family family_of(const LlavaParts& f, bool tied) {
  return {.vision = f.vision,
          .projector = f.projector,
          .language = f.language,
          .feature_layers = f.feature_layers,
          .layer_list = f.layer_list,
          .drop_first = f.drop_first,
          .tied = tied};
}

/// Those of a config.json: tower, two-layer projector, decoder, which hidden states are used.
inline LlavaParts read_llava_parts(const Reader& r, const VisionConfig& default_tower, std::string_view default_text,
                                   std::int64_t default_layer, std::string_view default_select) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  LlavaParts f;
  const bool siglip = std::holds_alternative<SiglipVision>(default_tower);
  const std::string tower = v.string("model_type", siglip ? "siglip_vision_model" : "clip_vision_model");
  f.vision = r.given("vision_config") ? read_tower(v, tower) : default_tower;
  const std::string text_type = t.string("model_type", default_text);
  f.language = read_decoder(t, text_type);
  f.feature_layers = r.integers("vision_feature_layer", {default_layer});
  f.layer_list = r.given("vision_feature_layer") && r.value()["vision_feature_layer"].is_array();
  f.drop_first = read_drop_first(r, default_select);
  // The key of the text_config counts too; Gemma's and Cohere's configs tie by default.
  const bool text_ties = text_type.starts_with("gemma") || text_type.starts_with("cohere");
  f.tied = r.boolean("tie_word_embeddings", false) || t.boolean("tie_word_embeddings", text_ties);
  const TowerFacts g = facts(f.vision);
  if (f.feature_layers.empty()) r.fail("vision_feature_layer", "the list is empty");
  for (auto l : f.feature_layers) check_feature_layer(r, l, g.layers);
  f.projector = {.in = checked_mul(g.hidden, static_cast<std::int64_t>(f.feature_layers.size())),
                 .out = width(f.language),
                 .activation = parse_activation(r.string("projector_hidden_act", "gelu")),
                 .bias = r.boolean("multimodal_projector_bias", true)};
  return f;
}

}  // namespace vlmest::json::hf
