// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include <vlmest/nn/tokens/levers.hpp>
#include <vlmest/nn/tokens/smart_resize.hpp>

namespace vlmest::tokens {

/// GLM-4.1V and GLM-4.5V. A still picture fills the temporal patch with copies of itself, and all copies count
/// against the pixel limits.
struct Glm4v {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  std::int64_t temporal_patch_size = 2;
  PixelBudget budget{12544, 11760000};
};

/// transformers 5.17 image_processing_glm4v.py, smart_resize; processing_glm4v.py, replace_image_token.
inline ImageLayout layout(const Glm4v& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  check("temporal_patch_size", r.temporal_patch_size, 1, 64);
  const auto factor = r.patch_size * r.merge;
  if (image.height < factor || image.width < factor) {  // enlarged first; int() may lose a pixel, as in Python
    const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
    const double scale = std::max(static_cast<double>(factor) / h, static_cast<double>(factor) / w);
    image = {to_int(h * scale), to_int(w * scale)};
  }
  return merged_patches(smart_resize(image, factor, r.budget, r.temporal_patch_size), r.patch_size, r.merge);
}

inline std::vector<Glm4v> lower(const Glm4v& r, const ImageLayout& l) {
  return lower_budget(r, l, r.temporal_patch_size);
}
inline std::string limit_line(const Glm4v& r) { return budget_line(r.budget); }

}  // namespace vlmest::tokens
