// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// Idefics2: a picture in its own aspect ratio, its sides between two limits, each of which becomes as many tokens as
/// the resampler has latents. Split, it is four quarters and the whole, each scaled by itself. Fields: Idefics2's
/// classes; `never` is do_image_splitting=False.
struct Idefics2 {
  std::int64_t patch_size = 14;
  std::int64_t latents = 64;         ///< image_seq_len, perceiver_config.resampler_n_latents
  std::int64_t shortest_edge = 378;  ///< size.shortest_edge: neither side is smaller
  std::int64_t longest_edge = 980;   ///< size.longest_edge: the longer side is not larger
  Tiling tiling = Tiling::never;
};

/// transformers 5.17 image_processing_idefics2.py, get_resize_output_image_size.
constexpr ImageSize between_edges(const Idefics2& r, ImageSize s) {
  const double aspect = static_cast<double>(s.width) / static_cast<double>(s.height);
  const auto most = static_cast<double>(r.longest_edge);
  if (s.width >= s.height && s.width > r.longest_edge)
    s = {to_int(most / aspect), r.longest_edge};
  else if (s.height > s.width && s.height > r.longest_edge)
    s = {r.longest_edge, to_int(most * aspect)};
  return {std::max(s.height, r.shortest_edge), std::max(s.width, r.shortest_edge)};
}

/// What becomes of one picture, as Idefics2ImageProcessor.split_images and resize make it. Throws Error for one that
/// has no quarters.
inline std::vector<ImageSize> pieces(const Idefics2& r, ImageSize s) {
  check(s);
  check("shortest_edge", r.shortest_edge);
  check("longest_edge", r.longest_edge);
  if (r.tiling == Tiling::never) return {between_edges(r, s)};
  if (s.height < 2 || s.width < 2)
    throw Error("image size", std::to_string(s.height) + "x" + std::to_string(s.width) + " cannot be cut into quarters",
                "give a larger picture, or do not split it: do_image_splitting=False");
  const std::array<std::int64_t, 2> heights{s.height / 2, s.height - s.height / 2},
      widths{s.width / 2, s.width - s.width / 2};
  std::vector<ImageSize> all;
  for (const std::int64_t h : heights)
    for (const std::int64_t w : widths) all.push_back(between_edges(r, {h, w}));
  all.push_back(between_edges(r, s));
  return all;
}

/// Idefics2ImageProcessor.pad gives all pieces the size of the largest; their patches are those that lie whole inside a
/// piece (modeling_idefics2.py, get_image_features). processing_idefics2.py: a marker before the first piece and behind
/// each of them, of a picture with text before and behind it.
inline ImageLayout layout(const Idefics2& r, ImageSize image) {
  check("resampler_n_latents", r.latents);
  const std::vector<ImageSize> all = pieces(r, image);
  ImageLayout l;
  l.tiles = static_cast<std::int64_t>(all.size());
  if (l.tiles > 1) l.tile_grid = {2, 2};
  for (const ImageSize s : all) l.resized = {std::max(l.resized.height, s.height), std::max(l.resized.width, s.width)};
  check("patch_size", r.patch_size, 1, std::min(l.resized.height, l.resized.width));
  const auto patches = [&](ImageSize s) { return Grid{s.height / r.patch_size, s.width / r.patch_size}; };
  l.patches = patches(l.resized);
  for (const ImageSize s : all) l.real_patches += patches(s).count();
  l.tower_tokens = l.patches.count();
  l.llm_tokens = checked_mul(l.tiles, r.latents);
  l.text_overhead = l.tiles + 1;
  return l;
}

/// Rows were recorded with whole pictures too.
inline std::optional<Idefics2> otherwise(const Idefics2& r) {
  Idefics2 whole = r;
  whole.tiling = Tiling::never;
  return whole;
}

/// The whole picture alone, then fewer pixels of it, which become the same number of tokens.
inline std::vector<Idefics2> lower(const Idefics2& r, const ImageLayout& l) {
  Idefics2 whole = r;
  whole.tiling = Tiling::never;
  std::vector<Idefics2> all = lower_edge(whole, l, r.patch_size);
  for (Idefics2& less : all) less.shortest_edge = std::min(less.shortest_edge, less.longest_edge);
  if (r.tiling != Tiling::never) all.insert(all.begin(), whole);
  return all;
}
inline std::string limit_line(const Idefics2& r) {
  return processor_line("do_image_splitting=" + std::string(r.tiling == Tiling::never ? "False" : "True") +
                        ", size={\"shortest_edge\": " + std::to_string(r.shortest_edge) +
                        ", \"longest_edge\": " + std::to_string(r.longest_edge) + "}");
}

}  // namespace vlmest::image_processor
