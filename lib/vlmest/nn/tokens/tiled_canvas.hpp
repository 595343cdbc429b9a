// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>

#include <vlmest/nn/tokens/image.hpp>

namespace vlmest::tokens {

/// The grid of min_tiles .. max_tiles tiles whose aspect ratio is nearest to the picture's; among equals the larger one
/// as long as the picture has more than half its pixels. InternVL, Aya Vision.
/// transformers 5.17 image_processing_got_ocr2.py, get_optimal_tiled_canvas: grids by area, then by width.
inline Grid nearest_aspect_grid(ImageSize image, std::int64_t tile, std::int64_t min_tiles, std::int64_t max_tiles) {
  const double aspect = static_cast<double>(image.width) / static_cast<double>(image.height);
  const auto pixels = static_cast<double>(image.height * image.width);
  const double half_tile = 0.5 * static_cast<double>(tile) * static_cast<double>(tile);
  double best = std::numeric_limits<double>::infinity();
  Grid grid{1, 1};
  for (auto area = min_tiles; area <= max_tiles; ++area)
    for (std::int64_t cols = 1; cols <= area; ++cols) {
      if (area % cols != 0) continue;
      const auto rows = area / cols;
      const double off = std::abs(aspect - static_cast<double>(cols) / static_cast<double>(rows));
      if (off < best)
        best = off, grid = {rows, cols};
      else if (off == best && pixels > half_tile * static_cast<double>(area))
        grid = {rows, cols};
    }
  return grid;
}

/// A picture stretched over that grid of square tiles, plus a thumbnail when there is more than one. Tower and LLM
/// tokens stay open. `never` makes one tile (crop_to_patches=False).
inline ImageLayout tiled_canvas(ImageSize image, std::int64_t tile, std::int64_t patch_size, std::int64_t min_tiles,
                                std::int64_t max_tiles, Tiling tiling) {
  check(image);
  ImageLayout l;
  l.patches = square_patches(tile, patch_size);
  check("max_patches", max_tiles, 1, max_tile_count);
  check("min_patches", min_tiles, 1, max_tiles);
  if (tiling != Tiling::never) l.tile_grid = nearest_aspect_grid(image, tile, min_tiles, max_tiles);
  l.resized = {l.tile_grid.rows * tile, l.tile_grid.cols * tile};
  l.tiles = l.tile_grid.count() + (l.tile_grid.count() > 1 ? 1 : 0);
  return l;
}

}  // namespace vlmest::tokens
