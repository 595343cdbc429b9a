// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// DeepSeek-VL and Janus: every picture is scaled into one square and padded; every patch is a token.
struct PaddedSquare {
  std::int64_t image_size = 384;
  std::int64_t patch_size = 16;
  std::int64_t high_res_size = 0;  ///< side of a second square for a second tower; 0: none
  std::int64_t markers = 0;        ///< tokens that the processor writes around those of a picture
  Grid features{};                 ///< where a block resamples them
};

/// transformers 5.17 processing_deepseek_vl.py, processing_deepseek_vl_hybrid.py and processing_janus.py,
/// replace_image_token, whose num_image_tokens is the number of the tower's patches.
constexpr ImageLayout layout(const PaddedSquare& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.features = r.features;
  l.tower_tokens = l.patches.count();
  l.llm_tokens = feature_grid(l).count();
  l.text_overhead = r.markers;
  return l;
}

/// Every picture becomes one square of fixed size.
inline std::vector<PaddedSquare> lower(const PaddedSquare&, const ImageLayout&) { return {}; }
inline std::string limit_line(const PaddedSquare&) { return {}; }

}  // namespace vlmest::image_processor
