// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

/// How MiniCPM-V's processors cut a picture: itself at about `scale` squared pixels, and where it has more of them
/// slices of the same area at their own size. transformers 5.17 image_processing_minicpmv4_6.py is a copy of the
/// image_processing_minicpmv.py that checkpoints ahead of it bring.
namespace vlmest::image_processor {

/// By slice_mode and max_slice_nums.
struct Slicing {
  std::int64_t max_tiles = 9;
  Tiling tiling = Tiling::automatic;
};

/// Python's max(round(length / divisor) * divisor, divisor).
inline std::int64_t ensure_divide(double length, std::int64_t divisor) {
  const double n = length / static_cast<double>(divisor);
  return std::max<std::int64_t>(to_int(std::nearbyint(n)) * divisor, divisor);
}

/// find_best_resize: sides are whole multiples of `side`.
inline ImageSize best_resize(std::int64_t scale, std::int64_t side, double height, double width, bool upscale) {
  const auto s = static_cast<double>(scale);
  if (height * width > s * s || upscale) {
    const double aspect = width / height;
    height = std::trunc(s / std::sqrt(aspect));
    width = std::trunc(height * aspect);
  }
  return {ensure_divide(height, side), ensure_divide(width, side)};
}

/// get_sliced_grid: rows and columns of the slices, or {0, 0}.
inline Grid sliced_grid(std::int64_t scale, const Slicing& by, ImageSize image) {
  if (by.tiling == Tiling::never) return {};
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const double log_ratio = std::log(w / h);
  const double ratio = w * h / static_cast<double>(scale * scale);
  const std::int64_t multiple = std::min(to_int(std::ceil(ratio)), by.max_tiles);
  if (multiple <= 1) return {};
  Grid best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t n = multiple - 1; n <= multiple + 1; ++n) {
    if (n == 1 || n > by.max_tiles) continue;
    for (std::int64_t cols = 1; cols <= n; ++cols) {
      if (n % cols != 0) continue;
      const std::int64_t rows = n / cols;
      const double error = std::abs(log_ratio - std::log(static_cast<double>(cols) / static_cast<double>(rows)));
      if (error >= least) continue;
      best = {rows, cols};
      least = error;
    }
  }
  return best;
}

/// The whole picture between a start and an end token, then each slice between two of its own, rows of slices on lines
/// of their own; tokens(grid) are a piece's. Sides in pixels are whole multiples of `side`.
template <class Tokens>
ImageLayout sliced_layout(std::int64_t scale, std::int64_t patch_size, std::int64_t side, const Slicing& by,
                          ImageSize image, Tokens tokens) {
  check(image);
  check("patch_size", patch_size);
  check("scale_resolution", scale);
  check("max_slice_nums", by.max_tiles, 1, max_tile_count);
  const auto patches = [&](ImageSize s) -> Grid { return {s.height / patch_size, s.width / patch_size}; };
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const Grid grid = sliced_grid(scale, by, image);
  ImageLayout l;
  l.resized = best_resize(scale, side, h, w, grid.count() == 0);
  l.patches = patches(l.resized);
  l.tower_tokens = l.patches.count();
  l.llm_tokens = tokens(l.patches);
  l.text_overhead = 2;
  if (grid.count() == 0) return l;
  const auto rows = static_cast<double>(grid.rows), cols = static_cast<double>(grid.cols);
  const auto refined_w = static_cast<double>(ensure_divide(w, grid.cols));
  const auto refined_h = static_cast<double>(ensure_divide(h, grid.rows));
  l.tile_grid = grid;
  l.tiles = 1 + grid.count();
  l.slices = patches(best_resize(scale, side, refined_h / rows, refined_w / cols, true));
  l.llm_tokens += grid.count() * tokens(l.slices);
  l.text_overhead += 2 * grid.count() + grid.rows - 1;
  return l;
}

}  // namespace vlmest::image_processor
