// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>
#include <vlmest/nn/vision/conv.hpp>

namespace vlmest::image_processor {

/// DeepSeek-OCR-2: the whole picture inside a square, and where a side of it is longer than a tile, tiles of nearest
/// aspect ratio beside it. Each view has as many tokens as the tower has queries for it; a separator follows.
struct DeepseekOcr2 {
  std::int64_t size = 1024;  ///< side of the whole view
  std::int64_t tile = 768;
  std::int64_t patch_size = 16;
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 6;
  Tiling tiling = Tiling::automatic;
};

/// Features of a square: the queries that modeling_deepseek_ocr2.py, DeepseekOcr2VisionModel.forward, chooses by its
/// size. Throws Error where the processor writes another number of placeholders.
inline std::int64_t queries_of(const DeepseekOcr2& r, std::int64_t side, std::int64_t placeholders_of) {
  const std::int64_t map = halved_twice(square_patches(side, r.patch_size).rows);
  const std::int64_t queries = checked_mul(map, map) <= 144 ? 144 : 256;
  const std::int64_t written = (placeholders_of + r.patch_size * 4 - 1) / (r.patch_size * 4);
  if (checked_mul(written, written) != queries)
    throw Error("image processor: size",
                "a view of " + std::to_string(side) + " pixels has " + std::to_string(queries) +
                    " features, but the processor writes " + std::to_string(written * written) + " placeholders",
                "give views of 768 or 1024 pixels and cut pictures into tiles");
  return queries;
}

/// transformers 5.17 image_processing_deepseek_ocr2.py, _preprocess; processing_deepseek_ocr2.py, _expand_image_tokens.
inline ImageLayout layout(const DeepseekOcr2& r, ImageSize image) {
  check(image);
  check("max_patches", r.max_tiles, 1, max_tile_count);
  check("min_patches", r.min_tiles, 1, r.max_tiles);
  const std::int64_t side = r.tiling == Tiling::never ? r.tile : r.size;
  ImageLayout l;
  l.patches = square_patches(side, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.resized = {side, side};
  l.llm_tokens = queries_of(r, side, r.size) + 1;
  if (r.tiling == Tiling::never || std::max(image.height, image.width) <= r.tile) return l;
  l.tile_grid = nearest_aspect_grid(image, r.tile, r.min_tiles, r.max_tiles);
  l.resized = {l.tile_grid.rows * r.tile, l.tile_grid.cols * r.tile};
  l.tiles = l.tile_grid.count() + 1;
  l.llm_tokens = checked_add(l.llm_tokens, checked_mul(l.tile_grid.count(), queries_of(r, r.tile, r.tile)));
  return l;
}

inline std::vector<DeepseekOcr2> lower(const DeepseekOcr2& r, const ImageLayout& l) {
  return local_tiles(l) > 0 ? lower_tiles(r, l) : std::vector<DeepseekOcr2>{};
}
/// The processor passes its own defaults to every call that does not say otherwise.
inline std::string limit_line(const DeepseekOcr2& r) {
  return "inputs = processor(images=images, text=text, min_patches=" + std::to_string(r.min_tiles) +
         ", max_patches=" + std::to_string(r.max_tiles) + ")";
}

}  // namespace vlmest::image_processor
