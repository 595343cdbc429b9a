// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <vlmest/unit/error.hpp>

namespace vlmest {

/// Pixels of a picture.
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  constexpr bool operator==(const ImageSize&) const = default;
};

/// Rows and columns of tiles, patches or features.
struct Grid {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  constexpr std::int64_t count() const { return rows * cols; }
  constexpr bool operator==(const Grid&) const = default;
};

/// What a model's processor makes of one picture, and what its tower and its language model see of it.
struct ImageLayout {
  ImageSize resized;              ///< the whole canvas after resize and padding, before it is cut into tiles
  std::int64_t tiles = 1;         ///< batch entries of the vision tower: tiles, thumbnail and padding tiles
  Grid tile_grid{1, 1};           ///< tiles that cover the canvas, without the thumbnail
  Grid patches;                   ///< tower patches of one tile
  Grid thumbnail;                 ///< those of the whole picture as a further tile of another size; else empty
  Grid features;                  ///< features of one tile where a block resamples them (nn/block.hpp); else empty
  Grid slices;                    ///< those of each tile behind a first one of another size (MiniCPM-V); else empty
  Grid window;                    ///< patches that attention pools to one feature (Molmo 2); else empty
  std::int64_t tower_tokens = 0;  ///< tower tokens of one tile, class token included
  /// Placeholder positions in the LLM's sequence, each for one image feature (newline features included). Mllama's
  /// single placeholder receives none: its features reach the LLM through cross_tokens only.
  std::int64_t llm_tokens = 0;
  std::int64_t text_overhead = 0;  ///< further tokens that the processor writes around and between them
  std::int64_t cross_tokens = 0;   ///< keys and values of the cross-attention layers (Mllama)
  /// Any-resolution rules: feature grid after the padding is cut off; of Phi-4-multimodal patches that hold pixels.
  Grid unpadded;
  /// The same after the bilinear shrink of LLaVA-OneVision or Phi-4-multimodal's pooling; else equal to `unpadded`.
  Grid kept;
  std::int64_t real_patches = 0;  ///< of all tiles, those that hold pixels, where others are padding; 0: all do
  std::int64_t sampled = 0;       ///< frames that the processor takes of a video; 0: a picture
  std::int64_t frames = 1;        ///< patch grids in time: temporal patches of a video whose patches are one sequence
  bool timestamps = false;        ///< text stands between the grids, so that each has positions of its own
  constexpr bool operator==(const ImageLayout&) const = default;
};

/// Features of one tile: one per patch, unless a block resamples them.
constexpr Grid feature_grid(const ImageLayout& l) { return l.features.count() > 0 ? l.features : l.patches; }

namespace image_processor {

/// Sides above this are refused: no picture has them, and every product below stays far inside 64 bits.
inline constexpr std::int64_t max_side = std::int64_t{1} << 20;
/// More tiles than any released processor makes; bounds the searches over tile grids.
inline constexpr std::int64_t max_tile_count = 1024;

/// When a picture is cut into tiles. `automatic` and `always` both are the processor's rule.
enum class Tiling {
  automatic,
  always,
  never,  ///< one tile
};

/// Limits of the Qwen line and of GLM-4V on the pixels of a picture and its copies in time together.
struct PixelBudget {
  std::int64_t min_pixels = 0;
  std::int64_t max_pixels = 0;
};

/// Which of the tower's tokens go on to the projector (`vision_feature_select_strategy`).
enum class FeatureSelect {
  drop_first,  ///< "default": all but the first one, which is the class token where the tower has one
  full,        ///< "full"
};

/// Throws Error unless both sides lie in 1 .. max_side.
constexpr void check(ImageSize s) {
  if (s.height < 1 || s.width < 1 || s.height > max_side || s.width > max_side)
    throw Error("image size", std::to_string(s.height) + "x" + std::to_string(s.width) + " is no picture",
                "give height and width in pixels, each from 1 to " + std::to_string(max_side));
}

/// `value`, or throws Error when a rule's parameter lies outside low .. high.
constexpr std::int64_t check(const char* parameter, std::int64_t value, std::int64_t low = 1,
                             std::int64_t high = max_side) {
  if (value < low || value > high)
    throw Error(std::string("image processor: ") + parameter, std::to_string(value) + " is out of range",
                "give " + std::to_string(low) + " to " + std::to_string(high));
  return value;
}

/// Patches of a square tile: a convolution with stride = kernel = patch_size drops the rest at the border.
constexpr Grid square_patches(std::int64_t image_size, std::int64_t patch_size) {
  check("patch_size", patch_size);
  check("image_size", image_size, patch_size);
  return {image_size / patch_size, image_size / patch_size};
}

/// A grid merged by squares of side `merge` (pixel shuffle, patch merger, average pooling). Throws Error when the sides
/// do not divide: the models' reshapes fail then.
constexpr Grid merged(Grid g, std::int64_t merge) {
  check("merge size", merge);
  if (g.rows % merge != 0 || g.cols % merge != 0)
    throw Error(
        "image processor",
        std::to_string(g.rows) + "x" + std::to_string(g.cols) + " patches cannot be merged by " + std::to_string(merge),
        "choose image_size / patch_size as a multiple of the merge size");
  return {g.rows / merge, g.cols / merge};
}

}  // namespace image_processor
}  // namespace vlmest
