// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// Llama 3.2 Vision: up to max_tiles tiles. The tower and the cross-attention layers always see max_tiles of them, the
/// missing ones as padding; the text sequence holds one placeholder per picture, which keeps its own embedding.
struct Mllama {
  std::int64_t image_size = 560;
  std::int64_t patch_size = 14;
  std::int64_t max_tiles = 4;
};

/// transformers 5.17 processing_mllama.py; modeling_mllama.py, MllamaVisionModel.forward.
constexpr ImageLayout layout(const Mllama& r, ImageSize image) {
  check(image);
  check("max_num_tiles", r.max_tiles, 1, max_tile_count);
  ImageLayout l;
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + 1;
  l.tile_grid = least_scaling_grid(image, r.image_size, r.max_tiles);
  l.resized = {l.tile_grid.rows * r.image_size, l.tile_grid.cols * r.image_size};
  l.tiles = r.max_tiles;
  l.llm_tokens = 1;
  l.cross_tokens = l.tiles * l.tower_tokens;
  return l;
}

inline std::vector<Mllama> lower(const Mllama& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Mllama& r) { return number_line("max_image_tiles", r.max_tiles); }

}  // namespace vlmest::image_processor
