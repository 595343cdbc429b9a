// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::image_processor {

/// The grid of min_tiles .. max_tiles tiles whose aspect ratio is nearest to the picture's; among equals the larger one
/// as long as the picture has more than half its pixels. InternVL, Aya Vision.
/// transformers 5.17 image_processing_got_ocr2.py, get_optimal_tiled_canvas: grids by area, then by width. Grids that
/// are not `allowed` are passed over; without any it is one tile.
template <class Allowed>
Grid nearest_aspect_grid(ImageSize image, std::int64_t tile, std::int64_t min_tiles, std::int64_t max_tiles,
                         Allowed&& allowed) {
  const double aspect = static_cast<double>(image.width) / static_cast<double>(image.height);
  const auto pixels = static_cast<double>(image.height * image.width);
  const double half_tile = 0.5 * static_cast<double>(tile) * static_cast<double>(tile);
  double best = std::numeric_limits<double>::infinity();
  Grid grid{1, 1};
  for (auto area = min_tiles; area <= max_tiles; ++area)
    for (std::int64_t cols = 1; cols <= area; ++cols) {
      if (area % cols != 0) continue;
      const auto rows = area / cols;
      if (!allowed(Grid{rows, cols})) continue;
      const double off = std::abs(aspect - static_cast<double>(cols) / static_cast<double>(rows));
      if (off < best)
        best = off, grid = {rows, cols};
      else if (off == best && pixels > half_tile * static_cast<double>(area))
        grid = {rows, cols};
    }
  return grid;
}
inline Grid nearest_aspect_grid(ImageSize image, std::int64_t tile, std::int64_t min_tiles, std::int64_t max_tiles) {
  return nearest_aspect_grid(image, tile, min_tiles, max_tiles, [](Grid) { return true; });
}

/// The grid that enlarges the picture least, or on request most, else the one that shrinks it least; among equals the
/// smallest. Llama 3.2 Vision, Command A Vision, Llama 4. transformers 5.17 image_processing_mllama.py and
/// image_processing_cohere2_vision.py, get_optimal_tiled_canvas, image_processing_llama4.py, get_best_fit, which
/// divides in `Real` = float: they list equals in another order, but of two with one scale and one area a third one
/// within both is smaller.
template <class Real = double>
constexpr Grid least_scaling_grid(ImageSize image, std::int64_t tile, std::int64_t max_tiles, bool enlarge = false) {
  const auto h = static_cast<Real>(image.height), w = static_cast<Real>(image.width);
  Grid best;
  Real best_scale = 0;
  for (std::int64_t rows = 1; rows <= max_tiles; ++rows)
    for (std::int64_t cols = 1; rows * cols <= max_tiles; ++cols) {
      const Real scale = std::min(static_cast<Real>(rows * tile) / h, static_cast<Real>(cols * tile) / w);
      const bool better = best_scale >= 1 && !enlarge ? scale >= 1 && scale < best_scale : scale > best_scale;
      if (better || (scale == best_scale && rows * cols < best.count())) best = {rows, cols}, best_scale = scale;
    }
  return best;
}

/// A picture stretched over a grid of square tiles, plus a thumbnail when there is more than one. Tower and LLM tokens
/// stay open.
constexpr ImageLayout canvas_of(Grid grid, std::int64_t tile, std::int64_t patch_size) {
  ImageLayout l;
  l.patches = square_patches(tile, patch_size);
  l.tile_grid = grid;
  l.resized = {grid.rows * tile, grid.cols * tile};
  l.tiles = grid.count() + (grid.count() > 1 ? 1 : 0);
  return l;
}

/// That of the nearest aspect ratio. `never` makes one tile (crop_to_patches=False).
inline ImageLayout tiled_canvas(ImageSize image, std::int64_t tile, std::int64_t patch_size, std::int64_t min_tiles,
                                std::int64_t max_tiles, Tiling tiling) {
  check(image);
  check("max_patches", max_tiles, 1, max_tile_count);
  check("min_patches", min_tiles, 1, max_tiles);
  if (tiling == Tiling::never) return canvas_of({1, 1}, tile, patch_size);
  return canvas_of(nearest_aspect_grid(image, tile, min_tiles, max_tiles), tile, patch_size);
}

/// Tiles of a picture that is handed over as a whole too, and the side of one.
constexpr std::int64_t local_tiles(const ImageLayout& l) { return l.tiles - 1; }
constexpr std::int64_t local_side(const ImageLayout& l) { return l.resized.height / l.tile_grid.rows; }

}  // namespace vlmest::image_processor
