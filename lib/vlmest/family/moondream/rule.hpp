// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/family/moondream/config.hpp>
#include <vlmest/nn/image_processor/levers.hpp>

namespace vlmest::image_processor {

/// Moondream 2: a picture is stretched to whole windows of the tower's square, which are cut out with a margin of their
/// neighbours; ahead of them comes the picture as one square. All of it becomes the features of one square.
struct Moondream {
  std::int64_t max_tiles = 12;  ///< max_crops, without the whole picture
  std::int64_t margin = 4;      ///< overlap_margin, patches
};

/// moondream/torch/image_crops.py, select_tiling, whose quotients are floating.
inline Grid select_tiling(ImageSize inner, std::int64_t window, std::int64_t most) {
  if (inner.height <= window || inner.width <= window) return {1, 1};
  const auto down = [](double x) { return static_cast<std::int64_t>(std::floor(x)); };
  const auto n = static_cast<double>(most);
  const std::int64_t low_rows = (inner.height + window - 1) / window, low_cols = (inner.width + window - 1) / window;
  if (const std::int64_t low = low_rows * low_cols; low > most) {
    const double ratio = std::sqrt(n / static_cast<double>(low));
    return {std::max<std::int64_t>(1, down(static_cast<double>(low_rows) * ratio)),
            std::max<std::int64_t>(1, down(static_cast<double>(low_cols) * ratio))};
  }
  const auto h = static_cast<double>(inner.height), w = static_cast<double>(inner.width);
  Grid g{std::max(down(std::sqrt(n * h / w)), low_rows), std::max(down(std::sqrt(n * w / h)), low_cols)};
  if (g.count() > most) {
    if (g.cols > g.rows)
      g.cols = most / g.rows;
    else
      g.rows = most / g.cols;
  }
  return {std::max<std::int64_t>(1, g.rows), std::max<std::int64_t>(1, g.cols)};
}

/// image_crops.py, overlap_crop_image, and vision.py, vision_projection: 729 features whatever the crops. Ahead of them
/// the code writes a first token. Throws Error for settings without a window.
inline ImageLayout layout(const Moondream& r, ImageSize image) {
  check(image);
  constexpr std::int64_t side = MoondreamVision::side, patch = MoondreamVision::patch_size;
  check("max_crops", r.max_tiles, 1, max_tile_count);
  check("overlap_margin", r.margin, 0, side / 2);
  const std::int64_t margins = 2 * r.margin * patch, window = side * patch - margins;
  ImageLayout l;
  l.tile_grid = select_tiling({image.height - margins, image.width - margins}, window, r.max_tiles);
  l.resized = {l.tile_grid.rows * window + margins, l.tile_grid.cols * window + margins};
  l.tiles = l.tile_grid.count() + 1;
  l.patches = {side, side};
  l.tower_tokens = l.llm_tokens = l.patches.count();
  l.text_overhead = 1;
  return l;
}

inline std::vector<Moondream> lower(const Moondream& r, const ImageLayout& l) { return lower_tiles(r, l); }
/// A frozen dataclass of the checkpoint's code, in HfMoondream.model.
inline std::string limit_line(const Moondream& r) {
  return "object.__setattr__(model.model.config.vision, \"max_crops\", " + std::to_string(r.max_tiles) + ")";
}

}  // namespace vlmest::image_processor
