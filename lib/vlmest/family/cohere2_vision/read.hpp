// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/cohere2_vision/family.hpp>
#include <vlmest/family/cohere2_vision/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/joining_projector.hpp>
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
  m.image_processor = image_processor::Cohere2Vision{
      .image_size = g.image_size, .patch_size = g.patch_size, .merge = f.projector.scale};
  m.native = {g.image_size, g.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Cohere2Vision& rule) {
  image.max_tiles(rule.max_tiles);
  image.tiling(rule.tiling);
}
/// Cohere2VisionImageProcessor. A tile has patch_size^2 placeholders (processing_cohere2_vision.py,
/// replace_image_token); min_patches is handed on and read by nobody (get_optimal_tiled_canvas).
inline void read_image_keys(ProcessorKeys& k, image_processor::Cohere2Vision& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  rule.max_tiles = k.integer("max_patches", 12, 1, image_processor::max_tile_count);
  k.ignore({"min_patches"});
  rule.tiling =
      k.boolean("crop_to_patches", true) ? image_processor::Tiling::automatic : image_processor::Tiling::never;
  const std::int64_t side = k.integer("patch_size", 16, 1, image_processor::max_side);
  const std::int64_t own =
      image_processor::merged(image_processor::square_patches(rule.image_size, rule.patch_size), rule.merge).count();
  if (side * side != own)
    k.differs("patch_size", std::to_string(side * side) + " tokens of a tile",
              "config.json makes them " + std::to_string(own));
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Cohere2Vision&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct Cohere2Vision {
  static constexpr std::string_view folder = "cohere2_vision";
  static constexpr std::array types{json::ModelType{.type = "cohere2_vision",
                                                    .read = json::hf::read_cohere2_vision,
                                                    .recorder = json::RecorderInputs{"tiles.cohere2_vision"}}};
  using Rules = json::Rules<image_processor::Cohere2Vision>;
};

}  // namespace vlmest::family
