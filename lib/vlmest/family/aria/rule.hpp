// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/anyres.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// split_resolutions where none are given: [height, width] of canvases in squares of 490 (image_processing_aria.py,
/// AriaImageProcessor.__init__).
inline std::vector<ImageSize> aria_canvases() {
  static constexpr Grid grids[]{{1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}, {1, 8}, {2, 4}, {2, 3}, {2, 2},
                                {2, 1}, {3, 1}, {3, 2}, {4, 1}, {4, 2}, {5, 1}, {6, 1}, {7, 1}, {8, 1}};
  std::vector<ImageSize> r;
  for (const Grid& g : grids) r.push_back({g.rows * 490, g.cols * 490});
  return r;
}

/// Aria: a picture, or each part of a canvas that it is cut into, is scaled into one square and padded at its end. The
/// processor passes max_image_size 980 and no splitting to every call that does not say otherwise.
struct Aria {
  std::int64_t image_size = 980;  ///< max_image_size: side of the square, 490 or 980
  std::int64_t min_size = 336;    ///< min_image_size: the shorter side is enlarged to it
  std::int64_t patch_size = 14;
  std::map<std::int64_t, std::int64_t> queries{{1225, 128}, {4900, 256}};  ///< features of a square, by its patches
  Tiling tiling = Tiling::never;                                           ///< split_image
  std::vector<ImageSize> canvases = aria_canvases();                       ///< split_resolutions
};

/// Patches of a square that show pixels of a part of this size (image_processing_aria.py, _preprocess;
/// modeling_aria.py, AriaModel._create_patch_attention_mask).
inline std::int64_t real_patches(const Aria& r, ImageSize part) {
  const double scale = static_cast<double>(r.image_size) / static_cast<double>(std::max(part.height, part.width));
  const auto filled = [&](std::int64_t side) {
    const std::int64_t pixels = std::max(to_int(static_cast<double>(side) * scale), r.min_size);
    return std::min((pixels + r.patch_size - 1) / r.patch_size, r.image_size / r.patch_size);
  };
  const std::int64_t whole = r.image_size / r.patch_size;
  return part.width >= part.height ? checked_mul(filled(part.height), whole) : checked_mul(whole, filled(part.width));
}

/// transformers 5.17 image_processing_aria.py, get_image_patches and _preprocess; processing_aria.py,
/// replace_image_token. A canvas whose sides are no multiple of the square's has smaller parts at its ends, which are
/// scaled up to a square of their own.
inline ImageLayout layout(const Aria& r, ImageSize image) {
  check(image);
  check("max_image_size", r.image_size);
  check("min_image_size", r.min_size, 1, r.image_size);
  ImageLayout l;
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  const auto queries = r.queries.find(l.tower_tokens);
  if (queries == r.queries.end())
    throw Error("image processor: max_image_size",
                "a square of " + std::to_string(r.image_size) + " pixels has " + std::to_string(l.tower_tokens) +
                    " patches, for which projector_patch_to_query_dict of config.json has no number of queries",
                "give a size whose patches it has");
  const ImageSize canvas = r.tiling == Tiling::never ? image : select_best_resolution(image, r.canvases);
  const auto parts = [&](std::int64_t side) {
    return r.tiling == Tiling::never ? 1 : (side + r.image_size - 1) / r.image_size;
  };
  l.tile_grid = {parts(canvas.height), parts(canvas.width)};
  l.tiles = check("split_resolutions", l.tile_grid.count(), 1, max_tile_count);
  l.resized = {l.tile_grid.rows * r.image_size, l.tile_grid.cols * r.image_size};
  l.llm_tokens = checked_mul(l.tiles, queries->second);
  const auto part_of = [&](std::int64_t side, std::int64_t at) {
    return r.tiling == Tiling::never ? side : std::min(r.image_size, side - at * r.image_size);
  };
  for (std::int64_t y = 0; y < l.tile_grid.rows; ++y)
    for (std::int64_t x = 0; x < l.tile_grid.cols; ++x)
      l.real_patches += real_patches(r, {part_of(canvas.height, y), part_of(canvas.width, x)});
  if (l.real_patches == checked_mul(l.tiles, l.tower_tokens)) l.real_patches = 0;
  return l;
}

/// Whole instead of cut, then in a smaller square.
inline std::vector<Aria> lower(const Aria& r, const ImageLayout& l) {
  std::vector<Aria> all;
  Aria less = r;
  if (l.tiles > 1) {
    less.tiling = Tiling::never;
    all.push_back(less);
  }
  for (auto q = r.queries.rbegin(); q != r.queries.rend(); ++q) {
    if (q->first >= l.tower_tokens) continue;
    std::int64_t side = 1;
    while (side * side < q->first) ++side;
    if (side * side != q->first) continue;
    less.image_size = side * r.patch_size;
    less.min_size = std::min(less.min_size, less.image_size);
    all.push_back(less);
  }
  return all;
}
/// The processor's own defaults come before what its files say.
inline std::string limit_line(const Aria& r) {
  return "inputs = processor(images=images, text=text, max_image_size=" + std::to_string(r.image_size) +
         ", split_image=" + (r.tiling == Tiling::never ? "False" : "True") + ")";
}

}  // namespace vlmest::image_processor
