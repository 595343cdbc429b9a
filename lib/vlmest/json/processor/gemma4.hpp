// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/image_processor/gemma4.hpp>

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Gemma4& rule) {
  image.number("max_soft_tokens", rule.soft_tokens, 1, 1 << 16);
}
/// transformers 5.17 image_processing_gemma4.py. image_seq_length of either file decides nothing: the counts are those
/// of the resized pictures.
inline void read_image_keys(ProcessorKeys& k, image_processor::Gemma4& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("pooling_kernel_size", rule.pool, "vision_config.pooling_kernel_size");
  rule.soft_tokens = k.integer("max_soft_tokens", rule.soft_tokens, 1, 1 << 16);
  k.ignore({"image_seq_length", "size"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Gemma4&) {
  k.ignore({"image_seq_length", "audio_seq_length", "audio_ms_per_token"});
}

}  // namespace vlmest::json
