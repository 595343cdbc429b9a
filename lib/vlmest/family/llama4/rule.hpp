// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// Llama 4: a picture, scaled without distortion and padded, over the grid of tiles that enlarges it least, and the
/// whole of it as one more tile where there are several; pixel shuffle in the tower.
struct Llama4 {
  std::int64_t image_size = 336;
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;       ///< 1 / pixel_shuffle_ratio
  std::int64_t max_tiles = 16;  ///< max_patches
  bool enlarge = false;         ///< resize_to_max_canvas: the grid that enlarges it most
};

/// transformers 5.17 image_processing_llama4.py, get_best_fit; processing_llama4.py, _prompt_split_image: a start, a
/// marker of the whole picture and an end, and a separator behind each of several tiles.
constexpr ImageLayout layout(const Llama4& r, ImageSize image) {
  check(image);
  check("max_patches", r.max_tiles, 1, max_tile_count);
  ImageLayout l =
      canvas_of(least_scaling_grid<float>(image, r.image_size, r.max_tiles, r.enlarge), r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + 1;
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  l.text_overhead = 3 + (l.tile_grid.count() > 1 ? l.tile_grid.count() : 0);
  return l;
}

inline std::vector<Llama4> lower(const Llama4& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Llama4& r) { return number_line("max_patches", r.max_tiles); }

}  // namespace vlmest::image_processor
