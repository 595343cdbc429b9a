// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/internvl/family.hpp>
#include <vlmest/family/internvl/read_chat.hpp>
#include <vlmest/family/internvl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/intern_vit.hpp>
#include <vlmest/json/processor/tiles.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// What the configs of the architecture share beside the tower; `text` is what a text_config without model_type means.
inline Vlm internvl_model(const Reader& r, std::string_view type, InternVitVision tower, std::string_view text,
                          bool tied) {
  const Reader t = r.object("text_config");
  InternVlFamily f;
  f.vision = std::move(tower);
  f.language = read_decoder(t, t.string("model_type", text));
  f.merge = read_merge(r, "downsample_ratio", 0.5);
  f.activation = parse_activation(r.string("projector_hidden_act", "gelu"));
  f.feature_layer = r.integer("vision_feature_layer", -1, -(f.vision.layers + 1), f.vision.layers);
  if (r.string("vision_feature_select_strategy", "default") != "default")
    r.fail("vision_feature_select_strategy", "expected \"default\"",
           "the class token must go: the features form a square");
  f.tied = r.boolean("tie_word_embeddings", tied);
  check_merge(r, f);
  Vlm m{.type = std::string(type)};
  m.image_processor =
      image_processor::InternVl{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .merge = f.merge};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

/// model_type "internvl": transformers 5.17, models/internvl/configuration_internvl.py. Without a vision_config the
/// tower is InternViT-300M's shape, without a text_config the language model is Qwen2.
inline Vlm read_internvl(const Reader& r) {
  Vlm m = internvl_model(r, "internvl", read_intern_vit_config(r.object("vision_config")), "qwen2", true);
  // The lines that its processor writes ahead of frames are tokens of Qwen's tokenizers.
  auto& f = get<InternVlFamily>(m.family);
  f.videos = r.object("text_config").string("model_type", "qwen2").starts_with("qwen");
  f.unknown_labels = !f.videos;
  return m;
}

/// model_type "qianfan_ocr": transformers 5.17, models/qianfan_ocr/configuration_qianfan_ocr.py.
inline Vlm read_qianfan_ocr(const Reader& r) {
  const Reader v = r.object("vision_config");
  for (const char* key : {"hidden_dropout_prob", "projection_dropout", "attention_dropout"})
    if (read_dropout(v, key, 0.0)) v.fail(key, "dropout in this tower is not modelled", "leave it at 0");
  InternVitVision tower = read_intern_vit_config(v, {.qkv_bias = true});
  tower.encoder = false;
  tower.drop_path = read_dropout(v, "drop_path_rate", 0.1);
  return internvl_model(r, "qianfan_ocr", std::move(tower), "qwen3", false);
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::InternVl& rule) { read_tiles(image, rule); }
inline void read_image(DescriptionImage& image, image_processor::H2ovl& rule) { read_tiles(image, rule.tiles); }
inline void read_image_keys(ProcessorKeys& k, image_processor::H2ovl& rule) { read_patch_keys(k, rule.tiles); }
inline void read_image_keys(ProcessorKeys& k, image_processor::InternVl& rule) { read_patch_keys(k, rule); }
/// InternVLVideoProcessor: frames are one square.
inline void read_video_keys(ProcessorKeys& k, image_processor::InternVl& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  refuse_num_frames(k);
  k.ignore({"fps", "initial_shift", "crop_to_patches", "min_patches", "max_patches"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::InternVl& rule) {
  k.same("image_seq_length",
         image_processor::merged(image_processor::square_patches(rule.image_size, rule.patch_size), rule.merge).count(),
         "vision_config");
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::H2ovl& rule) { read_outer_keys(k, rule.tiles); }

}  // namespace vlmest::json

namespace vlmest::family {

struct InternVl {
  static constexpr std::string_view folder = "internvl";
  static constexpr std::array types{
      json::ModelType{
          .type = "internvl", .read = json::hf::read_internvl, .recorder = json::RecorderInputs{"tiles.internvl"}},
      json::ModelType{.type = "qianfan_ocr",
                      .read = json::hf::read_qianfan_ocr,
                      .recorder = json::RecorderInputs{"tiles.internvl"}},
      json::ModelType{
          .type = "internvl_chat",
          .read = json::hf::read_internvl_chat,
          .recorder = json::not_recorded,
          .remote_code = true,
          .no_processor_file = "sets no tiles: the checkpoint's own code cuts pictures as config.json says"},
      json::ModelType{
          .type = "h2ovl_chat",
          .read = json::hf::read_h2ovl_chat,
          .recorder = json::not_recorded,
          .remote_code = true,
          .no_processor_file = "sets no tiles: the checkpoint's own code cuts pictures as config.json says"}};
  using Rules = json::Rules<image_processor::InternVl, image_processor::H2ovl>;
};

}  // namespace vlmest::family
