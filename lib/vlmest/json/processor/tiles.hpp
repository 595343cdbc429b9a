// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/keys.hpp>
#include <vlmest/nn/tokens/aya_vision.hpp>
#include <vlmest/nn/tokens/cohere2_vision.hpp>
#include <vlmest/nn/tokens/internvl.hpp>
#include <vlmest/nn/tokens/mllama.hpp>

/// InternVL, Qianfan-OCR and Aya Vision (GotOcr2ImageProcessor), Command A Vision, and Llama 3.2 Vision.
namespace vlmest::json {

/// `crop_to_patches` of the file decides nothing: InternVLProcessor, QianfanOCRProcessor and AyaVisionProcessor pass
/// true to every call (transformers 5.17 processing_internvl.py, processing_qianfan_ocr.py and
/// processing_aya_vision.py, _defaults), which comes before the file.
template <class Rule>
void read_patch_keys(ProcessorKeys& k, Rule& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  rule.min_tiles = k.integer("min_patches", 1, 1, tokens::max_tile_count);
  rule.max_tiles = k.integer("max_patches", 12, 1, tokens::max_tile_count);
  if (rule.min_tiles > rule.max_tiles) k.fail("min_patches", "larger than max_patches", "exchange them");
  if (!k.boolean("crop_to_patches", true))
    k.note("crop_to_patches is false, but the processor passes true to every call: pictures are cut");
}
inline void read_image_keys(ProcessorKeys& k, tokens::InternVl& rule) { read_patch_keys(k, rule); }
inline void read_image_keys(ProcessorKeys& k, tokens::AyaVision& rule) { read_patch_keys(k, rule); }

inline void read_outer_keys(ProcessorKeys& k, tokens::InternVl& rule) {
  k.same("image_seq_length",
         tokens::merged(tokens::square_patches(rule.image_size, rule.patch_size), rule.merge).count(), "vision_config");
}
/// A tile's placeholders are (img_size // (patch_size * downsample_factor))^2.
inline void read_outer_keys(ProcessorKeys& k, tokens::AyaVision& rule) {
  k.same("img_size", rule.image_size, "vision_config.image_size");
  const std::int64_t patch = k.integer("patch_size", 28, 1, tokens::max_side);
  const std::int64_t cell = patch * k.integer("downsample_factor", 1, 1, tokens::max_side);
  const std::int64_t side = rule.image_size / cell;
  const std::int64_t own = tokens::merged(tokens::square_patches(rule.image_size, rule.patch_size), rule.merge).count();
  if (side * side != own)
    k.differs("patch_size", std::to_string(side * side) + " tokens of a tile",
              "config.json makes them " + std::to_string(own));
}

/// Cohere2VisionImageProcessor. A tile has patch_size^2 placeholders (processing_cohere2_vision.py,
/// replace_image_token); min_patches is handed on and read by nobody (get_optimal_tiled_canvas).
inline void read_image_keys(ProcessorKeys& k, tokens::Cohere2Vision& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  rule.max_tiles = k.integer("max_patches", 12, 1, tokens::max_tile_count);
  k.ignore({"min_patches"});
  rule.tiling = k.boolean("crop_to_patches", true) ? tokens::Tiling::automatic : tokens::Tiling::never;
  const std::int64_t side = k.integer("patch_size", 16, 1, tokens::max_side);
  const std::int64_t own = tokens::merged(tokens::square_patches(rule.image_size, rule.patch_size), rule.merge).count();
  if (side * side != own)
    k.differs("patch_size", std::to_string(side * side) + " tokens of a tile",
              "config.json makes them " + std::to_string(own));
}

/// The model's tile embeddings are for max_num_tiles, neither more nor fewer.
inline void read_image_keys(ProcessorKeys& k, tokens::Mllama& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.same("max_image_tiles", rule.max_tiles, "vision_config.max_num_tiles");
}

}  // namespace vlmest::json
