// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// Aya Vision: InternVL's tiling on a SigLIP tower; a start and an end token, and a label before each tile.
struct AyaVision {
  std::int64_t image_size = 364;
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;  ///< downsample_factor
  std::int64_t min_tiles = 1;
  std::int64_t max_tiles = 12;
  Tiling tiling = Tiling::automatic;
};

/// transformers 5.17 processing_aya_vision.py, replace_image_token.
inline ImageLayout layout(const AyaVision& r, ImageSize image) {
  auto l = tiled_canvas(image, r.image_size, r.patch_size, r.min_tiles, r.max_tiles, r.tiling);
  l.tower_tokens = l.patches.count();
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  l.text_overhead = 2 + l.tiles;
  return l;
}

inline std::vector<AyaVision> lower(const AyaVision& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const AyaVision& r) { return number_line("max_patches", r.max_tiles); }

}  // namespace vlmest::image_processor
