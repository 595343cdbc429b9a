// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/tokens/image.hpp>

namespace vlmest::tokens {

/// Llama 3.2 Vision: up to max_tiles tiles. The tower and the cross-attention layers always see max_tiles of them, the
/// missing ones as padding; the text sequence holds one placeholder per picture, which keeps its own embedding.
struct Mllama {
  std::int64_t image_size = 560;
  std::int64_t patch_size = 14;
  std::int64_t max_tiles = 4;
};

/// The arrangement that enlarges the picture least, else the one that shrinks it least; among equals the smallest.
/// transformers 5.17 image_processing_mllama.py, get_optimal_tiled_canvas.
constexpr Grid tile_arrangement(const Mllama& r, ImageSize image) {
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  Grid best;
  double best_scale = 0;
  for (std::int64_t rows = 1; rows <= r.max_tiles; ++rows)
    for (std::int64_t cols = 1; rows * cols <= r.max_tiles; ++cols) {
      const double scale =
          std::min(static_cast<double>(rows * r.image_size) / h, static_cast<double>(cols * r.image_size) / w);
      const bool better = best_scale >= 1 ? scale >= 1 && scale < best_scale : scale > best_scale;
      if (better || (scale == best_scale && rows * cols < best.count())) best = {rows, cols}, best_scale = scale;
    }
  return best;
}

/// transformers 5.17 processing_mllama.py; modeling_mllama.py, MllamaVisionModel.forward.
constexpr ImageLayout layout(const Mllama& r, ImageSize image) {
  check(image);
  check("max_num_tiles", r.max_tiles, 1, max_tile_count);
  ImageLayout l;
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + 1;
  l.tile_grid = tile_arrangement(r, image);
  l.resized = {l.tile_grid.rows * r.image_size, l.tile_grid.cols * r.image_size};
  l.tiles = r.max_tiles;
  l.llm_tokens = 1;
  l.cross_tokens = l.tiles * l.tower_tokens;
  return l;
}

}  // namespace vlmest::tokens
