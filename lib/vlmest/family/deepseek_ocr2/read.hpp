// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/deepseek_ocr2/read_config.hpp>
#include <vlmest/family/deepseek_ocr2/read_remote.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/processor/tiles.hpp>

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::DeepseekOcr2& rule) { read_tiles(image, rule); }
/// DeepseekOcr2Processor passes crop_to_patches=True, min_patches=2 and max_patches=6 to every call, which comes before
/// the file (transformers 5.17 processing_deepseek_ocr2.py, _defaults).
inline void read_image_keys(ProcessorKeys& k, image_processor::DeepseekOcr2& rule) {
  k.must_be("do_resize", true);
  const ProcessorSize size = k.size("size");
  rule.size = size.height.value_or(rule.size);
  if (size.width.value_or(rule.size) != rule.size) k.fail("size", "is no square", "give equal height and width");
  rule.tile = k.integer("tile_size", rule.tile, 1, image_processor::max_side);
  k.ignore({"min_patches", "max_patches", "background_color"});
  if (!k.boolean("crop_to_patches", true))
    k.note("crop_to_patches is false, but the processor passes true to every call: pictures are cut");
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::DeepseekOcr2& rule) {
  k.same("patch_size", rule.patch_size, "sam_config.patch_size");
  k.same("downsample_ratio", 4, "the two convolutions");
}

/// Arguments of infer().
inline void read_image(DescriptionImage& image, image_processor::DeepseekOcr& rule) {
  image.number("base_size", rule.size, 1, image_processor::max_side);
  image.number("image_size", rule.tile, 1, image_processor::max_side);
  read_tiles(image, rule);
}
/// DeepSeek-OCR's own code reads no processor's file.
inline void read_image_keys(ProcessorKeys& k, image_processor::DeepseekOcr&) {
  k.note("DeepSeek-OCR's infer() reads no file: its arguments base_size, image_size and crop_mode decide");
  k.ignore({"size", "candidate_resolutions", "image_mean", "image_std", "normalize"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::DeepseekOcr& rule) {
  k.same("patch_size", rule.patch_size, "SAM's patches");
  k.same("downsample_ratio", 4, "the two convolutions");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct DeepseekOcr2 {
  static constexpr std::string_view folder = "deepseek_ocr2";
  static constexpr std::array types{json::ModelType{.type = "deepseek_ocr2",
                                                    .read = json::hf::read_deepseek_ocr2,
                                                    .recorder = json::RecorderInputs{"tiles.deepseek_ocr2", 1024}},
                                    json::ModelType{.type = "deepseek_vl_v2",
                                                    .read = json::hf::read_deepseek_vl_v2,
                                                    .recorder = json::not_recorded,
                                                    .remote_code = true}};
  using Rules = json::Rules<image_processor::DeepseekOcr2, image_processor::DeepseekOcr>;
};

}  // namespace vlmest::family
