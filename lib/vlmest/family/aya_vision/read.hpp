// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/aya_vision/family.hpp>
#include <vlmest/family/aya_vision/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/joining_projector.hpp>
#include <vlmest/json/processor/tiles.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

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
  m.image_processor =
      image_processor::AyaVision{.image_size = g.image_size, .patch_size = g.patch_size, .merge = f.projector.scale};
  m.native = {g.image_size, g.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::AyaVision& rule) { read_tiles(image, rule); }
inline void read_image_keys(ProcessorKeys& k, image_processor::AyaVision& rule) { read_patch_keys(k, rule); }
/// A tile's placeholders are (img_size // (patch_size * downsample_factor))^2.
inline void read_outer_keys(ProcessorKeys& k, image_processor::AyaVision& rule) {
  k.same("img_size", rule.image_size, "vision_config.image_size");
  const std::int64_t patch = k.integer("patch_size", 28, 1, image_processor::max_side);
  const std::int64_t cell = patch * k.integer("downsample_factor", 1, 1, image_processor::max_side);
  const std::int64_t side = rule.image_size / cell;
  const std::int64_t own =
      image_processor::merged(image_processor::square_patches(rule.image_size, rule.patch_size), rule.merge).count();
  if (side * side != own)
    k.differs("patch_size", std::to_string(side * side) + " tokens of a tile",
              "config.json makes them " + std::to_string(own));
}

}  // namespace vlmest::json

namespace vlmest::family {

struct AyaVision {
  static constexpr std::string_view folder = "aya_vision";
  static constexpr std::array types{json::ModelType{
      .type = "aya_vision", .read = json::hf::read_aya_vision, .recorder = json::RecorderInputs{"tiles.aya_vision"}}};
  using Rules = json::Rules<image_processor::AyaVision>;
};

}  // namespace vlmest::family
