// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/tokens/levers.hpp>
#include <vlmest/nn/tokens/tiled_canvas.hpp>

namespace vlmest::tokens {

/// InternVL 2.5 and 3: tiles of nearest aspect ratio and a thumbnail, pixel shuffle, a start and an end token.
struct InternVl {
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;  ///< 1 / downsample_ratio
  std::int64_t min_tiles = 1;
  std::int64_t max_tiles = 12;
  Tiling tiling = Tiling::automatic;
  bool thumbnail = true;  ///< use_thumbnail of the checkpoints' own code; transformers' port always adds one
};

/// transformers 5.17 processing_internvl.py, replace_image_token, and modeling_internvl_chat.py of the checkpoints,
/// chat(); the tower adds a class token that is dropped again.
inline ImageLayout layout(const InternVl& r, ImageSize image) {
  auto l = tiled_canvas(image, r.image_size, r.patch_size, r.min_tiles, r.max_tiles, r.tiling);
  if (!r.thumbnail) l.tiles = l.tile_grid.count();
  l.tower_tokens = l.patches.count() + 1;
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  l.text_overhead = 2;
  return l;
}

inline std::vector<InternVl> lower(const InternVl& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const InternVl& r) { return number_line("max_patches", r.max_tiles); }

}  // namespace vlmest::tokens
