// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>
#include <vlmest/nn/image_processor/video.hpp>
#include <vlmest/unit/sort_stably.hpp>

namespace vlmest::image_processor {

/// PerceptionLM: the whole picture as one square, and the tiles of the grid in which it becomes largest; pooled patches
/// of each (transformers 5.17 image_processing_perception_lm.py). A frame of a video is one square.
struct PerceptionLm {
  std::int64_t tile_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t pool = 2;  ///< pooling_ratio: sides of the squares of patches that are averaged
  bool class_token = true;
  std::int64_t max_tiles = 36;        ///< max_num_tiles
  Tiling tiling = Tiling::automatic;  ///< never: any vision_input_type but "thumb+tile"
};

/// A grid of tiles, and its columns by its rows.
struct RatioGrid {
  double ratio = 1;
  Grid grid{1, 1};
};

/// _find_supported_aspect_ratios: grids of most tiles come first, of as many the narrow ones, but all of one ratio
/// stand where its first one does.
inline std::vector<RatioGrid> tile_grids(std::int64_t max_tiles) {
  std::vector<RatioGrid> grids;
  std::map<double, std::size_t> first;
  for (std::int64_t n = max_tiles; n > 0; --n)
    for (std::int64_t cols = 1; cols <= n; ++cols) {
      if (n % cols != 0) continue;
      grids.push_back({static_cast<double>(cols) / static_cast<double>(n / cols), {n / cols, cols}});
      first.try_emplace(grids.back().ratio, first.size());
    }
  sort_stably(grids, [&](const RatioGrid& a, const RatioGrid& b) {
    return first.find(a.ratio)->second < first.find(b.ratio)->second;
  });
  return grids;
}

/// _fit_image_to_canvas: of the grids that hold the picture as it is, the one in which its shorter side becomes
/// longest; of equals the last. Counted in double precision and cut to integers as Python does.
inline std::optional<Grid> holding_grid(const std::vector<RatioGrid>& grids, ImageSize image, std::int64_t tile) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double aspect = width / height;
  std::optional<Grid> best;
  double longest = 0;
  for (const auto& [ratio, grid] : grids) {
    const std::int64_t rows = checked_mul(grid.rows, tile), cols = checked_mul(grid.cols, tile);
    if (rows < image.height || cols < image.width) continue;
    const double scale = std::min(static_cast<double>(cols) / width, static_cast<double>(rows) / height);
    double side = scale * height;
    if (aspect < 1) side = std::floor(side * aspect);
    if (aspect > 1) side = std::floor(scale * width / aspect);
    if (best && side < longest) continue;
    best = grid;
    longest = side;
  }
  return best;
}

/// _find_closest_aspect_ratio, of pictures that no grid holds: the nearest ratio that is not wider than a wide picture,
/// but wider than a narrow one, and of that the grid of most tiles.
inline Grid nearest_ratio_grid(const std::vector<RatioGrid>& grids, ImageSize image) {
  const double aspect = static_cast<double>(image.width) / static_cast<double>(image.height);
  double nearest = 1;  // of a single tile, on the right side of every picture's
  for (const RatioGrid& g : grids)
    if (aspect >= 1 ? g.ratio <= aspect && g.ratio > nearest : g.ratio > aspect && g.ratio < nearest) nearest = g.ratio;
  return std::ranges::find(grids, nearest, &RatioGrid::ratio)->grid;  // the first one has most tiles
}

/// Of one square.
inline ImageLayout square_layout(const PerceptionLm& r) {
  ImageLayout l;
  l.resized = {r.tile_size, r.tile_size};
  l.patches = square_patches(r.tile_size, r.patch_size);
  l.tower_tokens = l.patches.count() + (r.class_token ? 1 : 0);
  const std::int64_t side = l.patches.rows / check("pooling_ratio", r.pool, 1, l.patches.rows);
  l.llm_tokens = checked_mul(side, side);
  return l;
}

/// processing_perception_lm.py, replace_image_token.
inline ImageLayout layout(const PerceptionLm& r, ImageSize image) {
  check(image);
  check("max_num_tiles", r.max_tiles, 1, max_tile_count);
  ImageLayout l = square_layout(r);
  if (r.tiling == Tiling::never) return l;
  Grid grid{1, 1};
  if (r.max_tiles > 1) {
    const std::vector<RatioGrid> grids = tile_grids(r.max_tiles);
    const std::optional<Grid> holds = holding_grid(grids, image, r.tile_size);
    grid = holds ? *holds : nearest_ratio_grid(grids, image);
  }
  l.tile_grid = grid;
  l.resized = {checked_mul(grid.rows, r.tile_size), checked_mul(grid.cols, r.tile_size)};
  l.tiles = grid.count() + 1;
  l.llm_tokens = checked_mul(l.llm_tokens, l.tiles);
  return l;
}

/// video_processing_utils.py, sample_frames; processing_perception_lm.py, replace_video_token.
inline ImageLayout video_layout(const PerceptionLm& r, const VideoSource& v) {
  check(v);
  ImageLayout l = square_layout(r);
  l.sampled = l.tiles = evenly_taken(v);
  l.llm_tokens = checked_mul(l.llm_tokens, l.tiles);
  return l;
}
inline OwnSampling own_sampling(const PerceptionLm&) { return {std::nullopt, max_frames}; }

inline std::vector<PerceptionLm> lower(const PerceptionLm& r, const ImageLayout& l) {
  return r.tiling == Tiling::never ? std::vector<PerceptionLm>{} : lower_tiles(r, l);
}
inline std::string limit_line(const PerceptionLm& r) { return number_line("max_num_tiles", r.max_tiles); }

}  // namespace vlmest::image_processor
