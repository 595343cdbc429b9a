// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// Nemotron Nano V2 VL: tiles of nearest aspect ratio, and behind several of them the whole picture as one more.
struct NemotronHVl {
  std::int64_t image_size = 512;
  std::int64_t patch_size = 16;
  std::int64_t merge = 2;
  std::int64_t max_tiles = 12;
  bool thumbnail = true;
};

/// image_processing.py of the checkpoint, dynamic_preprocess; processing.py writes a token ahead of a picture's
/// placeholders and one behind.
inline ImageLayout layout(const NemotronHVl& r, ImageSize image) {
  ImageLayout l = tiled_canvas(image, r.image_size, r.patch_size, 1, r.max_tiles, Tiling::automatic);
  if (!r.thumbnail) l.tiles = l.tile_grid.count();
  l.tower_tokens = l.patches.count();
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  l.text_overhead = 2;
  return l;
}

inline std::vector<NemotronHVl> lower(const NemotronHVl& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const NemotronHVl& r) { return number_line("max_num_tiles", r.max_tiles); }

}  // namespace vlmest::image_processor
