// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// Command A Vision: tiles of a grid that scales the picture least, and a thumbnail; a start and an end token, and a
/// line break behind each tile.
struct Cohere2Vision {
  std::int64_t image_size = 512;
  std::int64_t patch_size = 16;
  std::int64_t merge = 2;  ///< downsample_factor
  std::int64_t max_tiles = 12;
  Tiling tiling = Tiling::automatic;
};

/// transformers 5.17 image_processing_cohere2_vision.py, crop_image_to_patches; processing_cohere2_vision.py,
/// replace_image_token.
constexpr ImageLayout layout(const Cohere2Vision& r, ImageSize image) {
  check(image);
  check("max_patches", r.max_tiles, 1, max_tile_count);
  const Grid grid = r.tiling == Tiling::never ? Grid{1, 1} : least_scaling_grid(image, r.image_size, r.max_tiles);
  ImageLayout l = canvas_of(grid, r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  l.text_overhead = 2 + l.tiles;
  return l;
}

inline std::vector<Cohere2Vision> lower(const Cohere2Vision& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Cohere2Vision& r) { return number_line("max_patches", r.max_tiles); }

}  // namespace vlmest::image_processor
