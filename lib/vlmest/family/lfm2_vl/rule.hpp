// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// LFM2-VL: a picture in its own aspect ratio within a budget of tokens; one that is far larger is cut into tiles of
/// the nearest aspect ratio, with the whole picture in front of the language model behind them.
struct Lfm2Vl {
  std::int64_t patch_size = 16;  ///< encoder_patch_size
  std::int64_t merge = 2;        ///< downsample_factor
  std::int64_t min_tokens = 64;  ///< min_image_tokens
  std::int64_t max_tokens = 256;
  std::int64_t tile_size = 512;
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 10;
  bool thumbnail = true;   ///< use_thumbnail
  double tolerance = 2.0;  ///< max_pixels_tolerance: times the budget from which a picture is cut
  bool markers = true;     ///< use_image_special_tokens
  Tiling tiling = Tiling::automatic;
};

/// Pixels of a side that becomes one token, and of a token.
constexpr std::int64_t token_side(const Lfm2Vl& r) { return r.patch_size * r.merge; }

/// transformers 5.17 image_processing_lfm2_vl.py, smart_resize.
inline ImageSize resized_whole(const Lfm2Vl& r, ImageSize image) {
  const std::int64_t factor = token_side(r), cell = factor * factor;
  const std::int64_t least = r.min_tokens * cell, most = r.max_tokens * cell;
  const auto f = static_cast<double>(factor), h = static_cast<double>(image.height),
             w = static_cast<double>(image.width);
  ImageSize s{std::max(factor, round_div(image.height, factor) * factor),
              std::max(factor, round_div(image.width, factor) * factor)};
  if (s.height * s.width > most) {
    const double beta = std::sqrt(h * w / static_cast<double>(most));
    s = {std::max(factor, to_int(std::floor(h / beta / f)) * factor),
         std::max(factor, to_int(std::floor(w / beta / f)) * factor)};
  } else if (s.height * s.width < least) {
    const double beta = std::sqrt(static_cast<double>(least) / (h * w));
    s = {to_int(std::ceil(h * beta / f)) * factor, to_int(std::ceil(w * beta / f)) * factor};
  }
  return s;
}

/// _is_image_too_large.
inline bool is_cut(const Lfm2Vl& r, ImageSize image) {
  if (r.tiling == Tiling::never || (r.min_tiles == 1 && r.max_tiles == 1)) return false;
  const std::int64_t factor = token_side(r);
  const std::int64_t h = std::max(r.patch_size, round_div(image.height, factor) * factor),
                     w = std::max(r.patch_size, round_div(image.width, factor) * factor);
  return static_cast<double>(h * w) > static_cast<double>(r.max_tokens * factor * factor) * r.tolerance;
}

/// Patches to which the processor pads every row: _preprocess.
inline std::int64_t padded_patches(const Lfm2Vl& r) {
  const std::int64_t whole = r.max_tokens * r.merge * r.merge, side = r.tile_size / r.patch_size;
  return r.tiling == Tiling::never ? whole : std::max(whole, side * side);
}

/// image_processing_lfm2_vl.py, resize_and_split; processing_lfm2_vl.py, _build_image_tokens.
inline ImageLayout layout(const Lfm2Vl& r, ImageSize image) {
  check(image);
  check("encoder_patch_size", r.patch_size, 1, 1 << 12);
  check("downsample_factor", r.merge, 1, 1 << 8);
  check("max_image_tokens", r.max_tokens);
  check("min_image_tokens", r.min_tokens, 1, r.max_tokens);
  check("max_tiles", r.max_tiles, 1, max_tile_count);
  check("min_tiles", r.min_tiles, 1, r.max_tiles);
  check("tile_size", r.tile_size, r.patch_size);
  const ImageSize whole = resized_whole(r, image);
  const Grid own{whole.height / r.patch_size, whole.width / r.patch_size};
  ImageLayout l;
  l.tower_tokens = padded_patches(r);
  l.resized = whole;
  l.patches = own;
  l.llm_tokens = merged(own, r.merge).count();
  l.text_overhead = r.markers ? 2 : 0;
  if (is_cut(r, image)) {
    l.tile_grid = nearest_aspect_grid(image, r.tile_size, r.min_tiles, r.max_tiles);
    l.resized = {l.tile_grid.rows * r.tile_size, l.tile_grid.cols * r.tile_size};
    l.patches = square_patches(r.tile_size, r.patch_size);
    const std::int64_t tiles = l.tile_grid.count(), each = merged(l.patches, r.merge).count();
    if (tiles == 1 && each != l.llm_tokens)
      throw Error("image size", "the processor makes one tile of this picture and counts other tokens for it",
                  "give min_tiles of two or more, or switch tiling off");
    if (tiles > 1) {
      l.tiles = tiles + (r.thumbnail ? 1 : 0);
      if (r.thumbnail) l.thumbnail = own;
      l.llm_tokens = tiles * each + (r.thumbnail ? l.llm_tokens : 0);
      if (r.markers) l.text_overhead += l.tiles;
    }
  }
  // A picture by itself may have more patches than rows are padded to; beside tiles the processor cannot put it.
  if (l.tiles == 1)
    l.tower_tokens = std::max(l.tower_tokens, l.patches.count());
  else if (std::max(l.patches.count(), l.thumbnail.count()) > l.tower_tokens)
    throw Error("image size", "the whole picture has more patches than its tiles are padded to",
                "use a less extreme aspect ratio");
  return l;
}

inline std::vector<Lfm2Vl> lower(const Lfm2Vl& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Lfm2Vl& r) {
  return processor_line("min_tiles=" + std::to_string(r.min_tiles) + ", max_tiles=" + std::to_string(r.max_tiles));
}

}  // namespace vlmest::image_processor
