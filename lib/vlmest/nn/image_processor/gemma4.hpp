// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// Gemma 4: sides scaled to a budget of features, each of pool x pool patches, and rounded down to whole features. The
/// processor pads every picture to the budget.
struct Gemma4 {
  std::int64_t patch_size = 16;
  std::int64_t pool = 3;           ///< pooling_kernel_size
  std::int64_t soft_tokens = 280;  ///< max_soft_tokens
  bool merged = false;             ///< patches are joined by squares before they are padded (gemma4_unified)
};

/// The budgets that the processors take (image_processing_gemma4.py, _SUPPORTED_SOFT_TOKENS).
inline constexpr std::array<std::int64_t, 5> gemma4_soft_tokens{70, 140, 280, 560, 1120};

inline void check_soft_tokens(std::int64_t n) {
  if (std::find(gemma4_soft_tokens.begin(), gemma4_soft_tokens.end(), n) == gemma4_soft_tokens.end())
    throw Error("image processor: max_soft_tokens", std::to_string(n) + " is no budget that the processor takes",
                "give 70, 140, 280, 560 or 1120");
}

/// transformers 5.17 image_processing_gemma4.py, get_aspect_ratio_preserving_size. Throws Error where a side would be
/// scaled to nothing.
inline ImageSize aspect_ratio_preserving_size(const Gemma4& r, ImageSize image) {
  const std::int64_t side = r.patch_size * r.pool, patches = r.soft_tokens * r.pool * r.pool;
  const std::int64_t budget = patches * r.patch_size * r.patch_size;
  const double factor = std::sqrt(static_cast<double>(budget) / static_cast<double>(image.height * image.width));
  const auto fitted = [&](std::int64_t n) {
    return to_int(std::floor(factor * static_cast<double>(n) / static_cast<double>(side))) * side;
  };
  ImageSize s{fitted(image.height), fitted(image.width)};
  const auto refuse = [&](const char* what) {
    throw Error("image size", std::to_string(image.height) + "x" + std::to_string(image.width) + what,
                "crop or pad the picture, or give a larger max_soft_tokens");
  };
  if (s.height == 0 && s.width == 0) refuse(" is scaled to nothing");
  const auto stretched = [&](std::int64_t longer, std::int64_t shorter) {
    return std::min(longer / shorter * side, patches / (r.pool * r.pool) * side);
  };
  if (s.height == 0)
    s = {side, stretched(image.width, image.height)};
  else if (s.width == 0)
    s = {stretched(image.height, image.width), side};
  if (s.height * s.width > budget) refuse(" is scaled to more than the budget");
  return s;
}

/// processing_gemma4.py, replace_image_token: each picture stands between a begin and an end token.
inline ImageLayout layout(const Gemma4& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size, 1, 1024);
  check("pooling_kernel_size", r.pool, 1, 64);
  check_soft_tokens(r.soft_tokens);
  ImageLayout l;
  l.resized = aspect_ratio_preserving_size(r, image);
  const std::int64_t cell = r.merged ? r.patch_size * r.pool : r.patch_size;
  l.patches = {l.resized.height / cell, l.resized.width / cell};
  l.tower_tokens = r.merged ? r.soft_tokens : r.soft_tokens * r.pool * r.pool;
  l.llm_tokens = r.merged ? l.patches.count() : l.patches.count() / (r.pool * r.pool);
  l.text_overhead = 2;
  return l;
}

inline std::vector<Gemma4> lower(const Gemma4& r, const ImageLayout&) {
  std::vector<Gemma4> all;
  for (auto n = gemma4_soft_tokens.rbegin(); n != gemma4_soft_tokens.rend(); ++n) {
    if (*n >= r.soft_tokens) continue;
    all.push_back(r);
    all.back().soft_tokens = *n;
  }
  return all;
}
inline std::string limit_line(const Gemma4& r) { return number_line("max_soft_tokens", r.soft_tokens); }

}  // namespace vlmest::image_processor
