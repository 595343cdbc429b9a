// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/nn/tokens/image.hpp>
#include <vlmest/nn/tokens/levers.hpp>
#include <vlmest/nn/tokens/rounding.hpp>

namespace vlmest::tokens {

/// Idefics3 and SmolVLM. The processor scales every picture to longest_edge (four tiles as released), small ones too,
/// and splits it, so that a thumbnail can cost 17 tiles; `never` is do_image_splitting=False.
struct Idefics3 {
  std::int64_t tile_size = 364;  ///< max_image_size.longest_edge: the tower's image_size
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;               ///< scale_factor of the pixel shuffle
  std::int64_t longest_edge = 4 * 364;  ///< size.longest_edge
  Tiling tiling = Tiling::automatic;
  std::int64_t extra_newline = 0;  ///< 1 where the tokenizer does not join two newlines into one token
};

/// The size with its longer side (the width of a square) at `edge`, the other one cut to an integer, at least 1, and
/// made even on request. transformers 5.17 image_processing_idefics3.py, _resize_output_size_rescale_to_max_len and
/// _resize_output_size_scale_below_upper_bound.
constexpr ImageSize with_longest_edge(ImageSize s, std::int64_t edge, bool even) {
  const double aspect = static_cast<double>(s.width) / static_cast<double>(s.height);
  const auto e = static_cast<double>(edge);
  const bool wide = s.width >= s.height;
  auto other = to_int(wide ? e / aspect : e * aspect);
  if (even) other += other % 2;
  other = std::max<std::int64_t>(other, 1);
  return wide ? ImageSize{other, edge} : ImageSize{edge, other};
}

/// The canvas that is cut into tiles: resize, then resize_for_vision_encoder in the same file. (Its own estimator,
/// get_number_of_image_patches, skips the second one's change of the short side.)
constexpr ImageSize split_canvas(const Idefics3& r, ImageSize s) {
  constexpr std::int64_t limit = 4096;  // MAX_IMAGE_SIZE there
  s = with_longest_edge(s, r.longest_edge, true);
  if (std::max(s.height, s.width) > limit) s = with_longest_edge(s, limit, false);
  s = with_longest_edge(s, ceil_div(std::max(s.height, s.width), r.tile_size) * r.tile_size, false);
  return {ceil_div(s.height, r.tile_size) * r.tile_size, ceil_div(s.width, r.tile_size) * r.tile_size};
}

/// transformers 5.17 processing_idefics3.py, replace_image_token: a marker and a row-column label before each tile, a
/// newline after each row, and the global tile between two markers with its label.
constexpr ImageLayout layout(const Idefics3& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.patches = square_patches(r.tile_size, r.patch_size);
  check("longest_edge", r.longest_edge);
  l.tower_tokens = l.patches.count();
  l.resized = {r.tile_size, r.tile_size};
  l.text_overhead = 3;
  if (r.tiling != Tiling::never) {
    l.resized = split_canvas(r, image);
    l.tile_grid = {l.resized.height / r.tile_size, l.resized.width / r.tile_size};
    if (const auto n = check("tiles", l.tile_grid.count(), 1, max_tile_count); n > 1) {
      l.tiles = n + 1;
      l.text_overhead += 2 * n + l.tile_grid.rows + r.extra_newline;
    }
  }
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  return l;
}

/// Rows were recorded with whole pictures too.
inline std::optional<Idefics3> otherwise(const Idefics3& r) {
  Idefics3 whole = r;
  whole.tiling = Tiling::never;
  return whole;
}

inline std::vector<Idefics3> lower(const Idefics3& r, const ImageLayout& l) {
  std::vector<Idefics3> all;
  for (std::int64_t n = std::max(l.tile_grid.rows, l.tile_grid.cols) - 1; n > 0; --n) {
    all.push_back(r);
    all.back().longest_edge = n * r.tile_size;
  }
  return all;
}
inline std::string limit_line(const Idefics3& r) { return edge_line(r.longest_edge); }

}  // namespace vlmest::tokens
