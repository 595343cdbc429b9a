// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// Gemma 3: one square averaged down to a fixed count of tokens; pan and scan (off as released) adds crops of wide
/// or tall pictures, each a square of its own.
struct Gemma3 {
  std::int64_t image_size = 896;
  std::int64_t patch_size = 14;
  std::int64_t image_tokens = 256;  ///< mm_tokens_per_image
  bool pan_and_scan = false;
  std::int64_t min_crop_size = 256;
  std::int64_t max_crops = 4;
  double min_ratio = 1.2;
};

/// Crops that pan and scan adds to the whole picture, {0, 0} for none.
/// transformers 5.17 image_processing_gemma3.py, pan_and_scan_batched.
constexpr Grid pan_and_scan_crops(const Gemma3& r, ImageSize image) {
  check("pan_and_scan_min_crop_size", r.min_crop_size);
  check("pan_and_scan_max_num_crops", r.max_crops, 1, max_tile_count);
  const bool wide = image.width >= image.height;
  const auto longer = wide ? image.width : image.height, shorter = wide ? image.height : image.width;
  const double ratio = static_cast<double>(longer) / static_cast<double>(shorter);
  if (ratio < r.min_ratio) return {0, 0};
  auto n = std::min(longer / r.min_crop_size, to_int(ratio + 0.5));
  n = std::min(r.max_crops, std::max<std::int64_t>(2, n));
  if (std::min(shorter, ceil_div(longer, n)) < r.min_crop_size) return {0, 0};
  return wide ? Grid{1, n} : Grid{n, 1};
}

/// transformers 5.17 processing_gemma3.py, replace_image_token. Each square stands between a begin and an end token and
/// two blank lines (one token each in Gemma's vocabulary). Crops add a sentence, counted as 17 tokens (15 words and two
/// single spaces), and a space between two crops.
constexpr ImageLayout layout(const Gemma3& r, ImageSize image) {
  check(image);
  check("mm_tokens_per_image", r.image_tokens);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  if (const auto g = r.pan_and_scan ? pan_and_scan_crops(r, image) : Grid{}; g.count() > 0) {
    l.tile_grid = g;
    l.tiles = 1 + g.count();
    l.text_overhead = 17 + g.count() - 1;
  }
  l.llm_tokens = l.tiles * r.image_tokens;
  l.text_overhead += 4 * l.tiles;
  return l;
}

inline std::vector<Gemma3> lower(const Gemma3& r, const ImageLayout&) {
  if (!r.pan_and_scan) return {};
  Gemma3 less = r;
  less.pan_and_scan = false;
  return {less};
}
inline std::string limit_line(const Gemma3& r) {
  return processor_line(std::string("do_pan_and_scan=") + (r.pan_and_scan ? "True" : "False"));
}

}  // namespace vlmest::image_processor
