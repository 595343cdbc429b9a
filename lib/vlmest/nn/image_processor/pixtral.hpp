// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// Llava on a Pixtral tower: native size, shrunk to longest_edge, whole patches.
struct Pixtral {
  std::int64_t patch_size = 16;
  std::int64_t longest_edge = 1024;
};

/// The picture inside a square of longest_edge, both sides rounded up to multiples of `cell`.
/// transformers 5.17 image_processing_pixtral.py, get_resize_output_image_size.
inline ImageSize fit_to_cells(ImageSize image, std::int64_t longest_edge, std::int64_t cell) {
  check(image);
  check("longest_edge", longest_edge);
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const double ratio = std::max(h / static_cast<double>(longest_edge), w / static_cast<double>(longest_edge));
  if (ratio > 1) image = {to_int(std::floor(h / ratio)), to_int(std::floor(w / ratio))};
  if (image.height == 0 || image.width == 0)
    throw Error("image size", "the short side vanishes when the long one is shrunk to " + std::to_string(longest_edge),
                "use a picture with a less extreme aspect ratio");
  return {ceil_div(image.height, cell) * cell, ceil_div(image.width, cell) * cell};
}

/// Pixtral's and Mistral-3's common rule; `merge` patches by `merge` make one LLM token. After each row of them comes a
/// break token, after the last one the end token.
inline ImageLayout native_rows(ImageSize image, std::int64_t longest_edge, std::int64_t patch_size,
                               std::int64_t merge) {
  check("patch_size", patch_size);
  check("spatial_merge_size", merge, 1, 64);
  ImageLayout l;
  l.resized = fit_to_cells(image, longest_edge, patch_size * merge);
  l.patches = {l.resized.height / patch_size, l.resized.width / patch_size};
  l.tower_tokens = l.patches.count();
  const auto g = merged(l.patches, merge);
  l.llm_tokens = g.count();
  l.text_overhead = g.rows;
  return l;
}

/// transformers 5.17 processing_pixtral.py, PixtralProcessor.replace_image_token.
inline ImageLayout layout(const Pixtral& r, ImageSize image) {
  return native_rows(image, r.longest_edge, r.patch_size, 1);
}

inline std::vector<Pixtral> lower(const Pixtral& r, const ImageLayout& l) { return lower_edge(r, l, r.patch_size); }
inline std::string limit_line(const Pixtral& r) { return edge_line(r.longest_edge); }

}  // namespace vlmest::image_processor
