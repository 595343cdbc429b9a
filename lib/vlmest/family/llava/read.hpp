// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/llava/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/llava_parts.hpp>
#include <vlmest/json/processor/pixtral.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "llava": transformers 5.17, models/llava/configuration_llava.py. Without a vision_config the tower is
/// CLIP-L/14 at 336 pixels, without a text_config the language model is Llama.
inline Vlm read_llava(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  LlavaParts f = read_llava_parts(r, clip, "llama", -2, "default");
  const bool own_sizes = takes_image_sizes(f.vision);
  if (own_sizes) {
    // "default", which the class would assume, leaves one feature too few for the images' sizes: the model cannot run.
    if (f.drop_first && r.given("vision_feature_select_strategy"))
      r.fail("vision_feature_select_strategy", "this tower has no class token to drop", "write \"full\"");
    f.drop_first = false;
  }
  const TowerFacts g = facts(f.vision);
  Vlm m{.type = "llava"};
  m.image_processor = image_processor::Pixtral{.patch_size = g.patch_size, .longest_edge = g.image_size};
  if (!own_sizes)
    m.image_processor = image_processor::Llava{
        .image_size = g.image_size,
        .patch_size = g.patch_size,
        .class_token = g.class_token,
        .select = f.drop_first ? image_processor::FeatureSelect::drop_first : image_processor::FeatureSelect::full};
  m.native = {g.image_size, g.image_size};
  m.family = family_of<LlavaFamily>(f, f.tied);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Llava {
  static constexpr std::string_view folder = "llava";
  static constexpr std::array types{json::ModelType{.type = "llava",
                                                    .read = json::hf::read_llava,
                                                    .recorder = json::RecorderInputs{"square.llava"},
                                                    .own_code = "llava_llama"}};
  using Rules = json::Rules<image_processor::Llava, image_processor::Pixtral>;
};

}  // namespace vlmest::family
