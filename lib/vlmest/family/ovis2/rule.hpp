// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// Ovis2: a picture as one square, or where it is cut as the fewest tiles that cover most of it behind a thumbnail.
struct Ovis2 {
  std::int64_t image_size = 448;  ///< of a tile
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;  ///< hidden_stride
  std::int64_t min_tiles = 1;
  std::int64_t max_tiles = 12;
  bool covering = true;               ///< use_covering_area_grid
  Tiling tiling = Tiling::automatic;  ///< crop_to_patches, which the released checkpoints switch on
};

/// A sum of numbers as Python adds them up since 3.12: floats with what rounding loses kept apart, integers without
/// (Python/bltinmodule.c, sum). Grids that cover equally much are told apart by its last bit.
struct PythonSum {
  double high = 0, lost = 0;
  void add(std::int64_t n) { high += static_cast<double>(n); }
  void add(double x) {
    const double t = high + x;
    lost += std::abs(high) >= std::abs(x) ? (high - t) + x : (x - t) + high;
    high = t;
  }
  double value() const { return high + lost; }
};

/// image_processing_ovis2.py, compute_patch_covering_area: adds the pixels of a part that is shrunk into a square.
inline void add_covered_area(PythonSum& sum, std::int64_t width, std::int64_t height, std::int64_t side) {
  const std::int64_t longer = std::max(width, height), shorter = std::min(width, height);
  if (longer <= side) return sum.add(longer * shorter);
  const double h = static_cast<double>(shorter) / static_cast<double>(longer) * static_cast<double>(side);
  sum.add(static_cast<double>(side) * h);
}

/// image_processing_ovis2.py, get_min_tile_covering_grid: of the grids whose tiles cover more than 0.9 of the picture
/// the smallest, of equally many tiles the one that covers most; without any, the one that covers most. Grids by
/// tiles, then by the first number, which the processor takes for columns of what it cut by rows. The parts of a
/// picture too narrow for a grid have no pixels.
inline Grid covering_grid(ImageSize image, std::int64_t side, std::int64_t max_tiles) {
  const auto area = static_cast<double>(image.height * image.width);
  Grid best{1, 1}, enough{0, 0};
  double best_ratio = -1, enough_ratio = -1;
  for (std::int64_t tiles = 1; tiles <= max_tiles; ++tiles)
    for (std::int64_t first = 1; first <= tiles; ++first) {
      if (tiles % first != 0) continue;
      const std::int64_t second = tiles / first, h = image.height / first, w = image.width / second;
      PythonSum covered;
      for (std::int64_t row = 0; row < first; ++row)
        for (std::int64_t col = 0; col < second; ++col)
          add_covered_area(covered, col == second - 1 ? image.width - col * w : w,
                           row == first - 1 ? image.height - row * h : h, side);
      const double ratio = covered.value() / area;
      if (ratio > 0.9 && (enough.count() == 0 || (tiles == enough.count() && ratio > enough_ratio)))
        enough = {second, first}, enough_ratio = ratio;
      if (ratio > best_ratio) best = {second, first}, best_ratio = ratio;
    }
  return enough.count() > 0 ? enough : best;
}

/// transformers 5.17 image_processing_ovis2.py, _preprocess; processing_ovis2.py, replace_image_token: a begin, a mark
/// where tiles begin, an end, one between tiles and one between rows.
inline ImageLayout layout(const Ovis2& r, ImageSize image) {
  check(image);
  check("max_patches", r.max_tiles, 1, max_tile_count);
  check("min_patches", r.min_tiles, 1, r.max_tiles);
  Grid grid{1, 1};
  if (r.tiling != Tiling::never && r.max_tiles > 1)
    grid = r.covering ? covering_grid(image, r.image_size, r.max_tiles)
                      : nearest_aspect_grid(image, r.image_size, r.min_tiles, r.max_tiles);
  ImageLayout l = canvas_of(grid, r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.llm_tokens = checked_mul(l.tiles, merged(l.patches, r.merge).count());
  l.text_overhead = 3 + grid.rows * (grid.cols - 1) + grid.rows - 1;
  return l;
}

inline std::vector<Ovis2> lower(const Ovis2& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Ovis2& r) { return number_line("max_patches", r.max_tiles); }

}  // namespace vlmest::image_processor
