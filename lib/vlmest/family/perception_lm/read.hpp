// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/family/perception_lm/family.hpp>
#include <vlmest/family/perception_lm/read_vision.hpp>
#include <vlmest/family/perception_lm/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "perception_lm": transformers 5.17, models/perception_lm/configuration_perception_lm.py. Without a
/// text_config the language model is Llama; the output head is tied by the model's own key, or where that says nothing
/// by the language model's.
inline Vlm read_perception_lm(const Reader& r) {
  refuse_null(r, {"projector_pooling_ratio", "vision_use_cls_token"});
  PerceptionLmFamily f;
  f.vision = read_eva_vision(r.object("vision_config"));
  const Reader t = r.object("text_config");
  f.language = read_decoder(t, t.string("model_type", "llama"));
  f.pool = r.integer("projector_pooling_ratio", 1, 1, 1 << 16);
  if (f.pool > f.vision.side())
    r.fail("projector_pooling_ratio", "larger than the " + std::to_string(f.vision.side()) + " patches of a side");
  if (const bool drops = r.boolean("vision_use_cls_token", true); drops != f.vision.class_token)
    r.fail("vision_use_cls_token",
           drops ? "true, but the tower has no class token: a patch would be taken for it"
                 : "false, but the tower has a class token, for which the processor writes none",
           drops ? "false, or give vision_config.model_args.class_token true" : "true");
  const bool text_ties = t.boolean("tie_word_embeddings", false);
  f.tied = r.boolean("tie_word_embeddings", text_ties);
  Vlm m{.type = "perception_lm"};
  m.image_processor = image_processor::PerceptionLm{.tile_size = f.vision.image_size,
                                                    .patch_size = f.vision.patch_size,
                                                    .pool = f.pool,
                                                    .class_token = f.vision.class_token};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::PerceptionLm& rule) {
  image.max_tiles(rule.max_tiles);
  image.tiling(rule.tiling);
}
/// PerceptionLMImageProcessor, which does not ask its size.
inline void read_image_keys(ProcessorKeys& k, image_processor::PerceptionLm& rule) {
  k.must_be("do_resize", true);
  k.ignore({"size"});
  k.same("tile_size", rule.tile_size, "vision_config.model_args.img_size");
  rule.max_tiles = k.integer("max_num_tiles", 36, 1, image_processor::max_tile_count);
  if (const std::string type = k.string("vision_input_type"); !type.empty() && type != "thumb+tile")
    rule.tiling = image_processor::Tiling::never;
}
/// PerceptionLMVideoProcessor: a frame is one square.
inline void read_video_keys(ProcessorKeys& k, image_processor::PerceptionLm& rule) {
  k.must_be("do_resize", true);
  k.must_be("do_center_crop", false);
  k.square("size", k.size("size"), rule.tile_size);
  refuse_num_frames(k);
  k.ignore({"fps"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::PerceptionLm& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.architecture");
  k.same("pooling_ratio", rule.pool, "projector_pooling_ratio");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct PerceptionLm {
  static constexpr std::string_view folder = "perception_lm";
  static constexpr std::array types{json::ModelType{.type = "perception_lm",
                                                    .read = json::hf::read_perception_lm,
                                                    .recorder = json::RecorderInputs{"tiles.perception_lm", 448}}};
  using Rules = json::Rules<image_processor::PerceptionLm>;
};

}  // namespace vlmest::family
