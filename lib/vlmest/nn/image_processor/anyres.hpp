// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// The canvas that keeps most of the picture's pixels, then wastes least, then comes first. Throws Error for an empty
/// list. transformers 5.17 image_processing_utils.py, select_best_resolution.
inline ImageSize select_best_resolution(ImageSize image, const std::vector<ImageSize>& candidates) {
  if (candidates.empty())
    throw Error("image processor: image_grid_pinpoints", "the list is empty", "give at least one [height, width]");
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const auto pixels = image.height * image.width;
  ImageSize best;
  std::int64_t most = -1, least_waste = 0;
  for (const auto c : candidates) {
    check("image_grid_pinpoints", c.height);
    check("image_grid_pinpoints", c.width);
    const double scale = std::min(static_cast<double>(c.width) / w, static_cast<double>(c.height) / h);
    const auto kept = std::min(to_int(w * scale) * to_int(h * scale), pixels);
    const auto waste = c.height * c.width - kept;
    if (kept > most || (kept == most && waste < least_waste)) best = c, most = kept, least_waste = waste;
  }
  return best;
}

/// The feature grid without the rows or columns that only show padding.
/// transformers 5.17 modeling_llava_next.py, unpad_image.
constexpr Grid unpad(Grid features, ImageSize image) {
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const auto rows = static_cast<double>(features.rows), cols = static_cast<double>(features.cols);
  if (w / h > cols / rows) {
    const auto used = to_int_round7(h * (cols / w));
    return {features.rows - std::max<std::int64_t>(0, features.rows - used) / 2 * 2, features.cols};
  }
  const auto used = to_int_round7(w * (rows / h));
  return {features.rows, features.cols - std::max<std::int64_t>(0, features.cols - used) / 2 * 2};
}

/// The any-resolution part that LLaVA-NeXT and LLaVA-OneVision share: canvas, tiles (the whole picture once more as
/// the first) and the unpadded feature grid; `llm_tokens` stays open.
inline ImageLayout anyres(ImageSize image, const std::vector<ImageSize>& pinpoints, std::int64_t image_size,
                          std::int64_t patch_size, bool class_token, FeatureSelect select, Grid features = {}) {
  check(image);
  ImageLayout r;
  r.patches = square_patches(image_size, patch_size);
  r.tower_tokens = r.patches.count() + (class_token ? 1 : 0);
  if (class_token != (select == FeatureSelect::drop_first))
    throw Error("image processor: vision_feature_select_strategy",
                "the tiles of this tower do not keep one feature per patch, so they cannot be joined",
                "use \"default\" for a tower with a class token and \"full\" for one without");
  r.resized = select_best_resolution(image, pinpoints);
  if (r.resized.height % image_size != 0 || r.resized.width % image_size != 0)
    throw Error("image processor: image_grid_pinpoints",
                std::to_string(r.resized.height) + "x" + std::to_string(r.resized.width) + " is not whole tiles",
                "give multiples of " + std::to_string(image_size));
  r.tile_grid = {r.resized.height / image_size, r.resized.width / image_size};
  r.tiles = 1 + r.tile_grid.count();
  r.features = features;
  const Grid tile = feature_grid(r);
  r.unpadded = unpad({r.tile_grid.rows * tile.rows, r.tile_grid.cols * tile.cols}, image);
  r.kept = r.unpadded;
  return r;
}

}  // namespace vlmest::image_processor
