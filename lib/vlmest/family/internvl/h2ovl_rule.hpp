// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <vlmest/family/internvl/rule.hpp>

namespace vlmest::image_processor {

/// H2OVL-Mississippi: InternVL's tiles, which multi-scale adaptive cropping takes from a picture twice where it is
/// alone in its prompt.
struct H2ovl {
  InternVl tiles;
  bool msac = false;  ///< use_msac of config.json
};

/// Cropping twice: grids of 1 .. max_tiles tiles, then of at least 3 whose columns and rows divide neither those of the
/// first grid; each grid of several tiles has a thumbnail, of which one stays. vLLM 0.8,
/// vllm/model_executor/models/h2ovl.py, calculate_h2ovl_targets and image_to_pixel_values_h2ovl, after image_process.py
/// of the checkpoints (load_image1, load_image2).
inline ImageLayout layout(const H2ovl& r, ImageSize image) {
  ImageLayout l = layout(r.tiles, image);
  if (!r.msac) return l;
  const std::int64_t most = r.tiles.tiling == Tiling::never ? 1 : r.tiles.max_tiles;
  const Grid first = nearest_aspect_grid(image, r.tiles.image_size, 1, most);
  const Grid second = nearest_aspect_grid(image, r.tiles.image_size, 3, most,
                                          [&](Grid g) { return first.cols % g.cols != 0 && first.rows % g.rows != 0; });
  const auto with_thumbnail = [](Grid g) { return g.count() + (g.count() > 1 ? 1 : 0); };
  l.tile_grid = first;
  l.resized = {first.rows * r.tiles.image_size, first.cols * r.tiles.image_size};
  l.tiles = with_thumbnail(first) + with_thumbnail(second) - 1;
  l.llm_tokens = l.tiles * merged(l.patches, r.tiles.merge).count();
  return l;
}

/// Several pictures are cropped once each.
inline std::vector<ImageLayout> layouts(const H2ovl& r, std::span<const ImageSize> images) {
  std::vector<ImageLayout> all;
  for (const ImageSize& image : images) all.push_back(images.size() == 1 ? layout(r, image) : layout(r.tiles, image));
  return all;
}

/// The checkpoints' own code has no argument for it.
inline std::vector<H2ovl> lower(const H2ovl&, const ImageLayout&) { return {}; }
inline std::string limit_line(const H2ovl&) { return ""; }

}  // namespace vlmest::image_processor
