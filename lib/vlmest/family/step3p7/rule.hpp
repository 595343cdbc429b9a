// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>
#include <vlmest/nn/vision/conv.hpp>

namespace vlmest::image_processor {

/// Step-3.7: the whole picture as one square, and windows that slide over it as squares of another size. Two
/// convolutions behind the tower leave a token of every four by four patches (transformers 5.17
/// image_processing_step3p7.py).
struct Step3p7 {
  std::int64_t size = 728;           ///< side of the whole view
  std::int64_t tile = 504;           ///< patch_size of the processor: side of what a window becomes
  std::int64_t longest_edge = 3024;  ///< max_image_size: larger pictures are scaled down before windows are counted
  std::int64_t patch_size = 14;      ///< vision_patch_size
};

/// Windows over a picture, and their side; 0: none.
struct StepWindows {
  std::int64_t side = 0;
  Grid grid{0, 0};
};

/// _plan_patches: a picture within the whole view has windows, of its shorter side, where it is long. A remainder of
/// more than a fifth of a window makes one more. Throws Error for pictures that are scaled down to nothing.
inline StepWindows plan_windows(const Step3p7& r, ImageSize image) {
  std::int64_t height = image.height, width = image.width;
  const auto longer = [&] { return static_cast<double>(std::max(height, width)); };
  const auto shorter = [&] { return static_cast<double>(std::min(height, width)); };
  if (std::min(height, width) < 32 && longer() / shorter() > 4) height = width = std::max(height, width);
  if (std::max(height, width) > r.longest_edge) {
    const double scale = static_cast<double>(r.longest_edge) / longer();
    height = static_cast<std::int64_t>(static_cast<double>(height) * scale);
    width = static_cast<std::int64_t>(static_cast<double>(width) * scale);
  }
  if (std::min(height, width) == 0)
    throw Error("image size",
                std::to_string(image.height) + "x" + std::to_string(image.width) +
                    " has an aspect ratio at which the processor scales a side to nothing",
                "give a picture that is less narrow");
  StepWindows w;
  if (std::max(height, width) <= r.size)
    w.side = longer() / shorter() > 1.5 ? std::min(height, width) : 0;
  else
    w.side = longer() / shorter() > 4 ? std::min({height, width, r.tile}) : r.tile;
  if (w.side == 0) return w;
  const auto along = [&](std::int64_t n) {
    const bool one_more = static_cast<double>(n % w.side) > 0.2 * static_cast<double>(w.side);
    return std::max<std::int64_t>(1, n / w.side + (n >= w.side && one_more ? 1 : 0));
  };
  w.grid = {along(height), along(width)};
  return w;
}

/// Features of a square: those that the tower leaves. Throws Error where the processor counts another number of them.
inline std::int64_t step_features(const Step3p7& r, std::int64_t side, const char* key) {
  const std::int64_t left = halved_twice(square_patches(side, r.patch_size).rows), counted = side / (r.patch_size * 4);
  if (left != counted)
    throw Error(std::string("image processor: ") + key,
                "of a square of " + std::to_string(side) + " pixels the tower leaves " +
                    std::to_string(checked_mul(left, left)) + " features, but the processor writes " +
                    std::to_string(checked_mul(counted, counted)) + " placeholders",
                "give a multiple of " + std::to_string(r.patch_size * 4) + " pixels");
  return checked_mul(left, left);
}

/// Tokens of the windows row by row, each between two markers, with one more behind every row but the last, and those
/// of the whole view between two (processing_step3p7.py, replace_image_token).
inline ImageLayout layout(const Step3p7& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.patches = square_patches(r.size, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.resized = {r.size, r.size};
  l.llm_tokens = step_features(r, r.size, "size");
  l.text_overhead = 2;
  const StepWindows w = plan_windows(r, image);
  if (w.grid.count() == 0) return l;
  l.tile_grid = w.grid;
  l.slices = square_patches(r.tile, r.patch_size);
  l.resized = {checked_mul(w.grid.rows, r.tile), checked_mul(w.grid.cols, r.tile)};
  l.tiles = w.grid.count() + 1;
  l.llm_tokens = checked_add(l.llm_tokens, checked_mul(w.grid.count(), step_features(r, r.tile, "patch_size")));
  l.text_overhead += 2 * w.grid.count() + w.grid.rows - 1;
  return l;
}

inline std::vector<Step3p7> lower(const Step3p7& r, const ImageLayout& l) {
  return local_tiles(l) > 0 ? lower_edge(r, l, 1) : std::vector<Step3p7>{};
}
inline std::string limit_line(const Step3p7& r) { return number_line("max_image_size", r.longest_edge); }

}  // namespace vlmest::image_processor
