// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/tower.hpp>
#include <vlmest/nn/family/llava.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// Facts that every tower's config has.
struct TowerFacts {
  std::int64_t hidden, layers, image_size, patch_size;
  bool class_token;
};
inline TowerFacts facts(const VisionConfig& v) {
  return std::visit(
      [](const auto& g) {
        using G = std::remove_cvref_t<decltype(g)>;
        return TowerFacts{g.hidden, g.layers, g.image_size, g.patch_size,
                          std::is_same_v<G, ClipVision> || std::is_same_v<G, InternVitVision>};
      },
      v);
}

/// vision_feature_select_strategy: whether the tower's first token goes.
inline bool read_drop_first(const Reader& r, std::string_view absent) {
  const std::string select = r.string("vision_feature_select_strategy", absent);
  if (select != "default" && select != "full")
    r.fail("vision_feature_select_strategy", "expected \"default\" or \"full\"");
  return select == "default";
}

/// What LLaVA and its relatives have in common: tower, two-layer projector, decoder, which hidden states are used.
inline LlavaFamily read_llava_parts(const Reader& r, const VisionConfig& default_tower, std::string_view default_text,
                                    std::int64_t default_layer, std::string_view default_select) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  LlavaFamily f;
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

/// model_type "llava": transformers 5.17, models/llava/configuration_llava.py. Without a vision_config the tower is
/// CLIP-L/14 at 336 pixels, without a text_config the language model is Llama.
inline Vlm read_llava(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  LlavaFamily f = read_llava_parts(r, clip, "llama", -2, "default");
  const bool own_sizes = takes_image_sizes(f.vision);
  if (own_sizes) {
    // "default", which the class would assume, leaves one feature too few for the images' sizes: the model cannot run.
    if (f.drop_first && r.given("vision_feature_select_strategy"))
      r.fail("vision_feature_select_strategy", "this tower has no class token to drop", "write \"full\"");
    f.drop_first = false;
  }
  const TowerFacts g = facts(f.vision);
  Vlm m{.type = "llava"};
  m.tokens = tokens::Pixtral{.patch_size = g.patch_size, .longest_edge = g.image_size};
  if (!own_sizes)
    m.tokens = tokens::Llava{.image_size = g.image_size,
                             .patch_size = g.patch_size,
                             .class_token = g.class_token,
                             .select = f.drop_first ? tokens::FeatureSelect::drop_first : tokens::FeatureSelect::full};
  m.native = {g.image_size, g.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf
