// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>

/// Processors that keep a picture's shape and limit its longer side: Pixtral's, and what of it Mistral 3 and LightOnOCR
/// share.
namespace vlmest::json {

template <class Rule>
void read_native_keys(ProcessorKeys& k, Rule& rule) {
  k.must_be("do_resize", true);
  k.must_be("do_center_crop", false);
  const ProcessorSize size = k.size("size");
  if (size.given() && !size.longest_edge && (!size.height || size.height != size.width))
    k.fail("size", "has no longest_edge", "give the pixels of the longer side");
  rule.longest_edge = size.longest_edge ? *size.longest_edge : size.height.value_or(1024);
}
inline void read_image(DescriptionImage& image, image_processor::Pixtral& rule) {
  image.longest_edge(rule.longest_edge);
}
/// PixtralProcessor passes its own patch_size * spatial_merge_size to every call, which comes before the image
/// processor's patch_size (transformers 5.17 processing_pixtral.py).
inline void read_image_keys(ProcessorKeys& k, image_processor::Pixtral& rule) {
  read_native_keys(k, rule);
  k.ignore({"patch_size"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Pixtral& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("spatial_merge_size", 1, "a tower without a merger");
}

}  // namespace vlmest::json
