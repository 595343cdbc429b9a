// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/family/deepseek_ocr2/rule.hpp>

namespace vlmest::image_processor {

/// DeepSeek-OCR: what infer() of its checkpoint (modeling_deepseekocr.py) makes of a picture by its arguments
/// base_size, image_size and crop_mode. The modes of the README are Tiny and Small (512 and 640, not cut), Base and
/// Large (1024 and 1280, not cut) and Gundam: tiles of 640 beside the whole view of 1024, which is infer()'s default.
struct DeepseekOcr {
  std::int64_t size = 1024;  ///< base_size: side of the whole view beside tiles
  std::int64_t tile = 640;   ///< image_size: side of a tile, or of the whole view where crop_mode is false
  std::int64_t patch_size = 16;
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 9;
  Tiling tiling = Tiling::automatic;  ///< never: crop_mode=False
};

/// dynamic_preprocess is called without a size: it cuts tiles of this side.
inline constexpr std::int64_t ocr_tile = 640;

/// Features along a side of a square view: SAM's patches, halved twice. Throws Error where infer() writes another
/// number of placeholders, ceil(side // 16 / 4), than the convolutions leave.
inline std::int64_t ocr_features(const char* parameter, std::int64_t side, std::int64_t patch_size) {
  const std::int64_t patches = square_patches(check(parameter, side, patch_size), patch_size).rows;
  const std::int64_t features = halved_twice(patches);
  if (features != (patches + 3) / 4)
    throw Error(std::string("image processor: ") + parameter,
                "a view of " + std::to_string(side) + " pixels has other features than placeholders",
                "give a multiple of " + std::to_string(patch_size * 4));
  return features;
}

/// Rows of features that each end in a newline feature.
inline std::int64_t rows_with_newlines(std::int64_t rows, std::int64_t cols) {
  return checked_mul(rows, checked_add(cols, 1));
}

/// infer(): of the whole view rows of features, each with a newline, and a separator; before them the same rows of all
/// tiles side by side.
inline ImageLayout layout(const DeepseekOcr& r, ImageSize image) {
  check(image);
  check("max_num", r.max_tiles, 2, max_tile_count);
  check("min_num", r.min_tiles, 2, r.max_tiles);
  const bool cuts = r.tiling != Tiling::never;
  const std::int64_t side = cuts ? r.size : r.tile,
                     whole = ocr_features(cuts ? "base_size" : "image_size", side, r.patch_size);
  ImageLayout l;
  l.patches = square_patches(side, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.resized = {side, side};
  l.llm_tokens = rows_with_newlines(whole, whole) + 1;
  if (!cuts || std::max(image.height, image.width) <= ocr_tile) return l;
  if (r.tile != ocr_tile)
    throw Error("image processor: image_size",
                std::to_string(r.tile) + ", but with crop_mode tiles are cut at 640 pixels whatever image_size is",
                "give image_size 640, or tiling never");
  l.tile_grid = nearest_aspect_grid(image, r.tile, r.min_tiles, r.max_tiles);
  l.resized = {l.tile_grid.rows * r.tile, l.tile_grid.cols * r.tile};
  l.tiles = l.tile_grid.count() + 1;
  const std::int64_t features = ocr_features("image_size", r.tile, r.patch_size);
  l.llm_tokens = checked_add(l.llm_tokens, rows_with_newlines(checked_mul(features, l.tile_grid.rows),
                                                              checked_mul(features, l.tile_grid.cols)));
  return l;
}

/// dynamic_preprocess takes at least two tiles. infer() hands it no number of them: its defaults are the code's.
inline std::vector<DeepseekOcr> lower(const DeepseekOcr& r, const ImageLayout& l) {
  std::vector<DeepseekOcr> all;
  if (local_tiles(l) == 0) return all;
  for (DeepseekOcr less : lower_tiles(r, l))
    if (less.max_tiles >= 2) all.push_back(less);
  return all;
}
inline std::string limit_line(const DeepseekOcr& r) {
  return "sys.modules[type(model).__module__].dynamic_preprocess.__defaults__ = (" + std::to_string(r.min_tiles) +
         ", " + std::to_string(r.max_tiles) + ", 640, False)";
}

}  // namespace vlmest::image_processor
