// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/video_llava/family.hpp>
#include <vlmest/family/video_llava/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/llava_parts.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "video_llava": transformers 5.17, models/video_llava/configuration_video_llava.py. Without a
/// vision_config the towers are CLIP-L/14 at 224 pixels, without a text_config the language model is Llama; the output
/// head is tied only by the model's own key.
inline Vlm read_video_llava(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 224, .patch_size = 14};
  const LlavaParts f = read_llava_parts(r, clip, "llama", -2, "default");
  const TowerFacts g = facts(f.vision);
  if (!g.class_token)
    r.object("vision_config")
        .fail("model_type", "the processor counts a class token, which this tower does not have",
              "known: clip_vision_model");
  Vlm m{.type = "video_llava"};
  m.image_processor = image_processor::VideoLlava{
      .image_size = g.image_size,
      .patch_size = g.patch_size,
      .select = f.drop_first ? image_processor::FeatureSelect::drop_first : image_processor::FeatureSelect::full};
  m.native = {g.image_size, g.image_size};
  m.family = family_of<VideoLlavaFamily>(f, r.boolean("tie_word_embeddings", false));
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::VideoLlava&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::VideoLlava& rule) {
  read_square_keys(k, rule.image_size);
}
inline void read_video_keys(ProcessorKeys& k, image_processor::VideoLlava& rule) {
  read_square_keys(k, rule.image_size);
  refuse_num_frames(k);
  k.ignore({"fps"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::VideoLlava& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("num_additional_image_tokens", 1, "the tower");
  const std::string select = k.string("vision_feature_select_strategy");
  const std::string own = rule.select == image_processor::FeatureSelect::drop_first ? "default" : "full";
  if (!select.empty() && select != own)
    k.differs("vision_feature_select_strategy", "'" + select.substr(0, 64) + "'", "config.json says '" + own + "'");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct VideoLlava {
  static constexpr std::string_view folder = "video_llava";
  static constexpr std::array types{json::ModelType{.type = "video_llava",
                                                    .read = json::hf::read_video_llava,
                                                    .recorder = json::RecorderInputs{"square.video_llava"}}};
  using Rules = json::Rules<image_processor::VideoLlava>;
};

}  // namespace vlmest::family
