// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/image_processor/qwen2_5_vl.hpp>

/// What files say to the rule of Qwen2.5-VL, Qwen2.5-Omni and EXAONE 4.5, whose processors are Qwen2-VL's classes.
namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Qwen2_5Vl& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::Qwen2_5Vl& rule, const FamilyTraits& t) {
  read_qwen_keys(k, rule, t.frames);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Qwen2_5Vl&) {}
inline void read_video_keys(ProcessorKeys& k, image_processor::Qwen2_5Vl& rule) {
  read_qwen_video_keys(k, rule, qwen2_video_class, true);
}

}  // namespace vlmest::json
