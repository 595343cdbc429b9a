// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>
#include <vlmest/nn/vision/conv.hpp>

namespace vlmest::image_processor {

/// GOT-OCR 2.0: a picture is stretched to the tower's square, or, where the call says crop_to_patches=True, cut into
/// tiles of nearest aspect ratio with a thumbnail; a start and an end token.
struct GotOcr2 {
  std::int64_t image_size = 1024;
  std::int64_t patch_size = 16;
  std::int64_t min_tiles = 1;
  std::int64_t max_tiles = 12;
  Tiling tiling = Tiling::never;
};

/// transformers 5.17 image_processing_got_ocr2.py, crop_image_to_patches; processing_got_ocr2.py, replace_image_token,
/// whose num_image_tokens is what the projector gives of a tile.
inline ImageLayout layout(const GotOcr2& r, ImageSize image) {
  ImageLayout l = tiled_canvas(image, r.image_size, r.patch_size, r.min_tiles, r.max_tiles, r.tiling);
  l.tower_tokens = l.patches.count();
  const std::int64_t side = halved_twice(l.patches.rows);
  l.llm_tokens = checked_mul(l.tiles, checked_mul(side, side));
  l.text_overhead = 2;
  return l;
}

inline std::vector<GotOcr2> lower(const GotOcr2& r, const ImageLayout& l) { return lower_tiles(r, l); }
/// The processor passes its own defaults to every call that does not say otherwise.
inline std::string limit_line(const GotOcr2& r) {
  return "inputs = processor(images, text, crop_to_patches=True, max_patches=" + std::to_string(r.max_tiles) + ")";
}

}  // namespace vlmest::image_processor
