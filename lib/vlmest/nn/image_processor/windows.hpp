// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// The attention windows over one picture's patches, row by row. Windows at the right and lower border are ragged:
/// they hold what is left, and empty ones do not exist.
struct WindowGrid {
  Grid windows;           ///< how many
  std::int64_t side = 0;  ///< patches along a full window's side
  Grid patches;           ///< patches of the picture

  constexpr std::int64_t count() const { return windows.count(); }
  /// Patches in the window at (row, col).
  constexpr std::int64_t length(std::int64_t row, std::int64_t col) const {
    return std::min(side, patches.rows - row * side) * std::min(side, patches.cols - col * side);
  }
  constexpr std::int64_t longest() const { return count() == 0 ? 0 : length(0, 0); }
};

/// More than any picture has: each is one call of the attention, in every layer.
inline constexpr std::int64_t max_windows = std::int64_t{1} << 18;

/// Windows of window_size pixels. transformers 5.17 vision_utils.py, get_vision_window_index: windows are laid over the
/// merged grid, window_size // merge // patch_size cells a side, and windows without patches drop out.
constexpr WindowGrid window_grid(Grid patches, std::int64_t window_size, std::int64_t patch_size, std::int64_t merge) {
  check("patch_size", patch_size);
  check("merge_size", merge);
  const auto cells = check("window_size", window_size) / merge / patch_size;
  if (cells == 0)
    throw Error("vision tower: window_size", std::to_string(window_size) + " pixels hold no merged patch",
                "give at least " + std::to_string(merge * patch_size));
  const auto g = merged(patches, merge);
  const WindowGrid r{{ceil_div(g.rows, cells), ceil_div(g.cols, cells)}, cells * merge, patches};
  if (r.count() > max_windows)
    throw Error("vision tower: window_size", std::to_string(r.count()) + " windows in one picture",
                "give a larger window or a smaller picture");
  return r;
}

}  // namespace vlmest::image_processor
