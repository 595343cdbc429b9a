// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>

namespace vlmest::image_processor {

/// FastVLM: CLIP's image processor makes one square of every picture, LLaVA's processor counts its tokens by the side
/// of a token in pixels. The square is in the processor's file alone; where there is none it is that of the released
/// checkpoints (transformers, models/fast_vlm/convert_fastvlm_weights_to_hf.py).
struct FastVlm {
  std::int64_t image_size = 1024;
  std::int64_t patch_size = 64;  ///< pixels of a token's side: what the tower's strides multiply to
  static constexpr bool class_token = false;
  static constexpr FeatureSelect select = FeatureSelect::full;
};

/// The tower rounds the sides of its map up, the processor down: they agree where the map divides the square.
inline ImageLayout layout(const FastVlm& r, ImageSize image) {
  check(image);
  if (r.image_size % r.patch_size != 0)
    throw Error(
        "crop_size",
        "the tower makes more tokens of " + std::to_string(r.image_size) + " pixels than the " + "processor counts",
        "a multiple of " + std::to_string(r.patch_size));
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = {r.image_size / r.patch_size, r.image_size / r.patch_size};
  l.tower_tokens = l.llm_tokens = l.patches.count();
  return l;
}

/// Every picture becomes one square of fixed size.
inline std::vector<FastVlm> lower(const FastVlm&, const ImageLayout&) { return {}; }
inline std::string limit_line(const FastVlm&) { return {}; }

}  // namespace vlmest::image_processor
