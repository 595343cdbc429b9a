// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

// The compiled library has the tables of its own rules.
#include <vlmest/nn/image_processor/impl/processor.hpp>
#include <vlmest/nn/image_processor/levers.hpp>

namespace toy {

using vlmest::ImageLayout;
using vlmest::ImageSize;

/// As many squares beside each other as the picture is wide.
struct Rule {
  std::int64_t image_size = 28;
  std::int64_t patch_size = 14;
  std::int64_t max_tiles = 4;
};

inline ImageLayout layout(const Rule& r, ImageSize image) {
  vlmest::image_processor::check(image);
  ImageLayout l;
  l.tiles = std::clamp<std::int64_t>(image.width / image.height, 1, r.max_tiles);
  l.tile_grid = {1, l.tiles};
  l.resized = {r.image_size, r.image_size * l.tiles};
  l.patches = vlmest::image_processor::square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.llm_tokens = l.tiles * l.patches.count();
  return l;
}
inline std::vector<Rule> lower(const Rule& r, const ImageLayout& l) {
  return vlmest::image_processor::lower_tiles(r, l);
}
inline std::string limit_line(const Rule& r) { return vlmest::image_processor::number_line("max_tiles", r.max_tiles); }

}  // namespace toy
