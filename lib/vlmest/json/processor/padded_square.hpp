// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/image_processor/padded_square.hpp>

/// DeepseekVLImageProcessor, DeepseekVLHybridImageProcessor and JanusImageProcessor.
namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::PaddedSquare&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::PaddedSquare& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.ignore({"min_size", "background_color"});
  if (rule.high_res_size == 0) return;
  k.square("high_res_size", k.size("high_res_size"), rule.high_res_size);
  k.ignore({"high_res_resample", "high_res_image_mean", "high_res_image_std", "high_res_background_color"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::PaddedSquare& rule) {
  k.same("num_image_tokens", image_processor::square_patches(rule.image_size, rule.patch_size).count(),
         "vision_config");
  k.ignore({"use_default_system_prompt"});
}

}  // namespace vlmest::json
