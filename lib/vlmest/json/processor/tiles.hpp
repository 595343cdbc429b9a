// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/description_image.hpp>
#include <vlmest/json/processor/keys.hpp>

/// GotOcr2ImageProcessor: InternVL, Qianfan-OCR and Aya Vision.
namespace vlmest::json {

template <class Rule>
void read_tiles(DescriptionImage& image, Rule& rule) {
  image.min_tiles(rule.min_tiles);
  image.max_tiles(rule.max_tiles);
  image.tiling(rule.tiling);
}

/// `crop_to_patches` of the file decides nothing: InternVLProcessor, QianfanOCRProcessor and AyaVisionProcessor pass
/// true to every call (transformers 5.17 processing_internvl.py, processing_qianfan_ocr.py and
/// processing_aya_vision.py, _defaults), which comes before the file.
template <class Rule>
void read_patch_keys(ProcessorKeys& k, Rule& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  rule.min_tiles = k.integer("min_patches", 1, 1, image_processor::max_tile_count);
  rule.max_tiles = k.integer("max_patches", 12, 1, image_processor::max_tile_count);
  if (rule.min_tiles > rule.max_tiles) k.fail("min_patches", "larger than max_patches", "exchange them");
  if (!k.boolean("crop_to_patches", true))
    k.note("crop_to_patches is false, but the processor passes true to every call: pictures are cut");
}

}  // namespace vlmest::json
