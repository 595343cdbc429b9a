// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/image_processor/llava.hpp>

/// Processors that make one square of every picture, which the tower must take.
namespace vlmest::json {

/// CLIP's: the shorter side at `size`, then cut to `crop_size`; SigLIP's and BLIP's: stretched to `size`.
/// transformers 5.17 image_processing_clip.py, image_processing_siglip.py, image_processing_blip.py.
inline void read_square_keys(ProcessorKeys& k, std::int64_t side) {
  k.must_be("do_resize", true);
  const ProcessorSize size = k.size("size"), crop = k.size("crop_size");
  const bool cut = k.boolean("do_center_crop", crop.given());
  if (cut) {
    if (crop.given()) k.square("crop_size", crop, side);
  } else if (size.height || size.width) {
    k.square("size", size, side);
  } else if (size.shortest_edge) {
    k.fail("do_center_crop", "false, so that pictures keep their shape, but the vision tower takes squares",
           "set it to true");
  }
}

inline void read_image_keys(ProcessorKeys& k, image_processor::Llava& rule) { read_square_keys(k, rule.image_size); }

/// What the processor takes the tower for: other values make other counts than the model's, which it refuses.
template <class Rule>
void read_tower_keys(ProcessorKeys& k, const Rule& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("num_additional_image_tokens", rule.class_token ? 1 : 0, "the tower");
  const std::string select = k.string("vision_feature_select_strategy");
  const std::string own = rule.select == image_processor::FeatureSelect::drop_first ? "default" : "full";
  if (!select.empty() && select != own)
    k.differs("vision_feature_select_strategy", "'" + select.substr(0, 64) + "'", "config.json says '" + own + "'");
}
inline void read_image(DescriptionImage&, image_processor::Llava&) {}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Llava& rule) { read_tower_keys(k, rule); }

}  // namespace vlmest::json
