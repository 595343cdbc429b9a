// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// Phi-3-vision: a picture as wide as so many crops allow, padded to whole ones, and itself as one crop more; rows of
/// features end with a separator. Every picture is filled up with empty crops to num_crops + 1, which the tower sees.
struct Phi3V {
  std::int64_t max_tiles = 4;  ///< num_crops: of Phi-3.5-vision's preprocessor_config.json; Phi-3-vision's has 16
};

inline constexpr std::int64_t phi3v_side = 336;   ///< of a crop
inline constexpr std::int64_t phi3v_merged = 12;  ///< features of a crop's side, of 2 x 2 patches each

/// processing_phi3_v.py, calc_hd_transform_size: rows and columns of crops.
inline Grid phi3v_crops(const Phi3V& r, ImageSize image) {
  const bool turned = image.width < image.height;
  const auto longer = static_cast<double>(turned ? image.height : image.width);
  const auto shorter = static_cast<double>(turned ? image.width : image.height);
  const double ratio = longer / shorter;
  const auto most = static_cast<double>(r.max_tiles);
  double scale = 1;
  while (scale * std::ceil(scale / ratio) <= most) scale += 1;
  scale -= 1;
  const auto side = static_cast<double>(phi3v_side);
  const double height = std::trunc(scale * side / ratio);
  if (height < 1)
    throw Error("image size",
                std::to_string(image.height) + "x" + std::to_string(image.width) + " leaves no row of pixels at " +
                    std::to_string(to_int(scale) * phi3v_side) + " of the longer side",
                "use a less extreme aspect ratio");
  const Grid lying{to_int(std::ceil(height / side)), to_int(scale)};
  return turned ? Grid{lying.cols, lying.rows} : lying;
}

/// The same file, preprocess: num_img_tokens.
inline ImageLayout layout(const Phi3V& r, ImageSize image) {
  check(image);
  check("num_crops", r.max_tiles, 1, max_tile_count);
  constexpr std::int64_t merged = phi3v_merged, crop = merged * merged;
  ImageLayout l;
  l.tile_grid = phi3v_crops(r, image);
  l.resized = {l.tile_grid.rows * phi3v_side, l.tile_grid.cols * phi3v_side};
  l.tiles = r.max_tiles + 1;
  l.patches = {2 * merged, 2 * merged};
  l.tower_tokens = l.patches.count() + 1;
  l.llm_tokens = (l.tile_grid.count() + 1) * crop + 1 + (l.tile_grid.rows + 1) * merged;
  return l;
}

/// Empty crops cost the tower what others do, so that any smaller number of them is less.
inline std::vector<Phi3V> lower(const Phi3V& r, const ImageLayout&) {
  std::vector<Phi3V> all;
  for (std::int64_t n = r.max_tiles - 1; n > 0; --n) all.push_back({.max_tiles = n});
  return all;
}
inline std::string limit_line(const Phi3V& r) { return number_line("num_crops", r.max_tiles); }

}  // namespace vlmest::image_processor
