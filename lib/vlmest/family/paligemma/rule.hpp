// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::image_processor {

/// PaliGemma 1 and 2: one square (224, 448 or 896), every patch a token. The processor's begin token and newline belong
/// to the prompt, not to a picture.
struct PaliGemma {
  std::int64_t image_size = 224;
  std::int64_t patch_size = 14;
  Grid features{};  ///< where a block resamples them
};

/// transformers 5.17 processing_paligemma.py, replace_image_token.
constexpr ImageLayout layout(const PaliGemma& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.features = r.features;
  l.tower_tokens = l.patches.count();
  l.llm_tokens = feature_grid(l).count();
  return l;
}

/// Every picture becomes one square of fixed size.
inline std::vector<PaliGemma> lower(const PaliGemma&, const ImageLayout&) { return {}; }
inline std::string limit_line(const PaliGemma&) { return {}; }

}  // namespace vlmest::image_processor
