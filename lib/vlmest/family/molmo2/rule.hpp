// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/unit/count.hpp>
#include <vlmest/unit/sort_stably.hpp>

/// allenai/molmo2 (commit f3cb108), olmo/hf_model/image_processing_molmo2.py and processing_molmo2.py: the code that
/// comes with Molmo 2's checkpoints.
namespace vlmest::image_processor {

/// Molmo 2: a picture is stretched to whole windows of the tower's square, which are cut out with a margin of their
/// neighbours; ahead of them comes the picture as one square. Attention pools squares of patches, of the picture as one
/// and of what the windows cover without their overlap.
struct Molmo2 {
  std::int64_t image_size = 378;  ///< side of the square
  std::int64_t patch_size = 14;
  std::int64_t max_tiles = 8;  ///< max_crops, without the whole picture
  Grid margins{4, 4};          ///< overlap_margins, patches ahead of a window and behind it
  Grid pool{2, 2};             ///< pooling_size
  bool columns = true;         ///< image_use_col_tokens: a token behind each row of features
  /// use_single_crop_col_tokens: the same of the whole picture, which the released models were trained without
  /// (launch_scripts/pretrain.py).
  bool whole_columns = false;
};

/// image_processing_molmo2.py, select_tiling, which divides in single precision: of the grids that enlarge the picture
/// the one that does so least, else the one that shrinks it least; of equals that of fewer windows, then of fewer rows.
/// A side that the margins take up, and more, scales by infinity or below zero.
inline Grid molmo_tiling(ImageSize inner, std::int64_t window, std::int64_t most) {
  struct Candidate {
    Grid grid;
    float scale;
  };
  std::vector<Candidate> all;
  const auto scaled = [&](std::int64_t n, std::int64_t side) {
    return static_cast<float>(checked_mul(n, window)) / static_cast<float>(side);
  };
  for (std::int64_t rows = 1; rows <= most; ++rows)
    for (std::int64_t cols = 1; rows * cols <= most; ++cols)
      all.push_back({{rows, cols}, std::min(scaled(rows, inner.height), scaled(cols, inner.width))});
  sort_stably(all, [](const Candidate& a, const Candidate& b) {
    return std::pair(a.grid.count(), a.grid.rows) < std::pair(b.grid.count(), b.grid.rows);
  });
  if (std::ranges::all_of(all, [](const Candidate& x) { return x.scale < 1; }))
    return std::ranges::max_element(all, {}, &Candidate::scale)->grid;
  for (Candidate& x : all)
    if (x.scale < 1) x.scale = 10e9F;
  return std::ranges::min_element(all, {}, &Candidate::scale)->grid;
}

/// arange_for_pooling: windows that cover a grid, the last ones with patches that are none.
inline Grid pooled(Grid patches, Grid window) {
  return {ceil_div(patches.rows, window.rows), ceil_div(patches.cols, window.cols)};
}

/// image_to_patches_and_grids, and processing_molmo2.py, get_image_tokens: tokens at both ends of the whole picture and
/// of its windows. Throws Error for settings without a window.
inline ImageLayout layout(const Molmo2& r, ImageSize image) {
  check(image);
  check("max_crops", r.max_tiles, 1, max_tile_count);
  ImageLayout l;
  l.patches = square_patches(r.image_size, r.patch_size);
  const std::int64_t side = l.patches.rows;
  check("overlap_margins", r.margins.rows, 0, side);
  check("overlap_margins", r.margins.cols, 0, side);
  const std::int64_t margin = r.margins.rows + r.margins.cols;
  check("patches of a window between its margins", side - margin, 1, side);
  l.window = {check("pooling_size", r.pool.rows, 1, side), check("pooling_size", r.pool.cols, 1, side)};
  const std::int64_t pixels = checked_mul(margin, r.patch_size), window = checked_mul(side - margin, r.patch_size);
  l.tile_grid = molmo_tiling({image.height - pixels, image.width - pixels}, window, r.max_tiles);
  if (r.margins.cols == 0 && l.tile_grid.count() > 1)
    throw Error("image processor: overlap_margins",
                "without a margin behind several windows the code takes all patches for overlap, and stops",
                "give a margin behind of at least one patch, or max_crops 1");
  l.resized = {l.tile_grid.rows * window + pixels, l.tile_grid.cols * window + pixels};
  l.tiles = l.tile_grid.count() + 1;
  l.tower_tokens = l.patches.count();
  const Grid covered{l.tile_grid.rows * (side - margin) + margin, l.tile_grid.cols * (side - margin) + margin};
  const Grid whole = pooled(l.patches, l.window), parts = pooled(covered, l.window);
  l.llm_tokens = checked_add(whole.count(), parts.count());
  l.text_overhead = 4 + (r.whole_columns ? whole.rows : 0) + (r.columns ? parts.rows : 0);
  return l;
}

inline std::vector<Molmo2> lower(const Molmo2& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Molmo2& r) {
  return processor_line("trust_remote_code=True, max_crops=" + std::to_string(r.max_tiles));
}

}  // namespace vlmest::image_processor
