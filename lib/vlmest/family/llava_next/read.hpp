// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/llava_next/family.hpp>
#include <vlmest/family/llava_next/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/anyres.hpp>
#include <vlmest/json/processor/anyres.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "llava_next": transformers 5.17, models/llava_next/configuration_llava_next.py. Without a vision_config
/// the tower is CLIP-L/14 at 336 pixels, without a text_config the language model is Llama; the output head is tied
/// only by the model's own key. The native size is the largest square canvas.
inline Vlm read_llava_next(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  const LlavaParts f = read_llava_parts(r, clip, "llama", -2, "default");
  const TowerFacts g = facts(f.vision);
  check_features_per_patch(r, g, f.drop_first);
  const image_processor::LlavaNext defaults;
  const image_processor::LlavaNext rule{
      .image_size = g.image_size,
      .patch_size = g.patch_size,
      .class_token = g.class_token,
      .select = f.drop_first ? image_processor::FeatureSelect::drop_first : image_processor::FeatureSelect::full,
      .pinpoints = read_pinpoints(r, defaults.pinpoints, g.image_size)};
  Vlm m{.type = "llava_next"};
  m.native = {g.image_size, g.image_size};
  for (const auto& s : rule.pinpoints)
    if (s.height == s.width && s.height > m.native.height) m.native = s;
  m.image_processor = rule;
  m.family = family_of<LlavaNextFamily>(f, r.boolean("tie_word_embeddings", false));
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::LlavaNext&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::LlavaNext& rule) { read_anyres_keys(k, rule); }
inline void read_outer_keys(ProcessorKeys& k, image_processor::LlavaNext& rule) { read_tower_keys(k, rule); }

}  // namespace vlmest::json

namespace vlmest::family {

struct LlavaNext {
  static constexpr std::string_view folder = "llava_next";
  static constexpr std::array types{json::ModelType{.type = "llava_next",
                                                    .read = json::hf::read_llava_next,
                                                    .recorder = json::RecorderInputs{"anyres.llava_next", -1},
                                                    .own_code = "llava_mistral"}};
  using Rules = json::Rules<image_processor::LlavaNext>;
};

}  // namespace vlmest::family
