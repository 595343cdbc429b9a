// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/tokens/mistral3.hpp>
#include <vlmest/nn/tokens/pixtral.hpp>

/// Pixtral and Mistral 3. The processor passes its own patch_size * spatial_merge_size to every call, which comes
/// before the image processor's patch_size (transformers 5.17 processing_pixtral.py).
namespace vlmest::json {

template <class Rule>
void read_native_keys(ProcessorKeys& k, Rule& rule) {
  k.must_be("do_resize", true);
  k.must_be("do_center_crop", false);
  const ProcessorSize size = k.size("size");
  if (size.given() && !size.longest_edge && (!size.height || size.height != size.width))
    k.fail("size", "has no longest_edge", "give the pixels of the longer side");
  rule.longest_edge = size.longest_edge ? *size.longest_edge : size.height.value_or(1024);
  k.ignore({"patch_size"});
}
inline void read_image_keys(ProcessorKeys& k, tokens::Pixtral& rule) { read_native_keys(k, rule); }
inline void read_image_keys(ProcessorKeys& k, tokens::Mistral3& rule) { read_native_keys(k, rule); }

inline void read_outer_keys(ProcessorKeys& k, tokens::Pixtral& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("spatial_merge_size", 1, "a tower without a merger");
}
inline void read_outer_keys(ProcessorKeys& k, tokens::Mistral3& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("spatial_merge_size", rule.merge, "spatial_merge_size");
}

}  // namespace vlmest::json
