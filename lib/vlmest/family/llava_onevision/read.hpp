// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/llava_onevision/family.hpp>
#include <vlmest/family/llava_onevision/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/anyres.hpp>
#include <vlmest/json/processor/anyres.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// N of "anyres_max_N", read as the model reads it: all letters of "anyres_max_" are stripped from both ends
/// (modeling_llava_onevision.py, pack_image_features).
inline std::int64_t read_max_tiles(const Reader& r) {
  const char* const key = "vision_aspect_ratio";
  const std::string s = r.string(key, "anyres_max_9");
  const char* const stripped = "anyres_max_";
  const auto from = s.find_first_not_of(stripped), to = s.find_last_not_of(stripped);
  const std::string digits = from == std::string::npos ? "" : s.substr(from, to - from + 1);
  if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string::npos ||
      std::stoll(digits) < 1)
    r.fail(key, "unknown value '" + s + "'", "give anyres_max_N, N from 1 to 9999");
  return std::stoll(digits);
}

/// model_type "llava_onevision": transformers 5.17, models/llava_onevision/configuration_llava_onevision.py. Without a
/// vision_config the tower is SigLIP so400m/14 at 384 pixels, cut to 26 layers and without its head; without a
/// text_config the language model is Qwen2. The native size is one tile.
inline Vlm read_llava_onevision(const Reader& r) {
  const SiglipVision siglip{.hidden = 1152,
                            .intermediate = 4304,
                            .layers = 26,
                            .heads = 16,
                            .image_size = 384,
                            .patch_size = 14,
                            .head = false};
  const LlavaParts f = read_llava_parts(r, siglip, "qwen2", -1, "full");
  const TowerFacts g = facts(f.vision);
  check_features_per_patch(r, g, f.drop_first);
  Vlm m{.type = "llava_onevision"};
  const image_processor::LlavaOnevision defaults;
  m.image_processor = image_processor::LlavaOnevision{
      .image_size = g.image_size,
      .patch_size = g.patch_size,
      .class_token = g.class_token,
      .select = f.drop_first ? image_processor::FeatureSelect::drop_first : image_processor::FeatureSelect::full,
      .max_tiles = read_max_tiles(r),
      .pinpoints = read_pinpoints(r, defaults.pinpoints, g.image_size)};
  m.native = {g.image_size, g.image_size};
  m.family = family_of<LlavaOnevisionFamily>(f, f.tied);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::LlavaOnevision& rule) {
  image.max_tiles(rule.max_tiles);
  image.flag("tile_several", rule.tile_several);
}
inline void read_image_keys(ProcessorKeys& k, image_processor::LlavaOnevision& rule) { read_anyres_keys(k, rule); }
/// LlavaOnevisionVideoProcessor: frames are one square.
inline void read_video_keys(ProcessorKeys& k, image_processor::LlavaOnevision& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  refuse_num_frames(k);
  k.ignore({"fps", "image_grid_pinpoints"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::LlavaOnevision& rule) {
  read_tower_keys(k, rule);
  k.same("num_image_tokens", image_processor::square_patches(rule.image_size, rule.patch_size).count(),
         "vision_config");
  const std::string ratio = k.string("vision_aspect_ratio"), own = "anyres_max_" + std::to_string(rule.max_tiles);
  if (!ratio.empty() && ratio != own)
    k.differs("vision_aspect_ratio", "'" + ratio.substr(0, 64) + "'", "config.json makes it '" + own + "'");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct LlavaOnevision {
  static constexpr std::string_view folder = "llava_onevision";
  static constexpr std::array types{json::ModelType{.type = "llava_onevision",
                                                    .read = json::hf::read_llava_onevision,
                                                    .recorder = json::RecorderInputs{"anyres.llava_onevision"}}};
  using Rules = json::Rules<image_processor::LlavaOnevision>;
};

}  // namespace vlmest::family
