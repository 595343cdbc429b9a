// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// LLaVA-1.5 and its kin on a CLIP or SigLIP tower: every picture becomes one square of image_size.
struct Llava {
  std::int64_t image_size = 336;
  std::int64_t patch_size = 14;
  bool class_token = true;  ///< CLIP has one, SigLIP does not
  FeatureSelect select = FeatureSelect::drop_first;
  Grid features{};  ///< of one tile where a block resamples them
};

/// One square as the tower sees it: `Rule` has image_size, patch_size, class_token, select and features, as Llava.
/// transformers 5.17 processing_llava.py, LlavaProcessor.replace_image_token.
template <class Rule>
constexpr ImageLayout square_layout(const Rule& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + (r.class_token ? 1 : 0);
  l.features = r.features;
  l.llm_tokens = l.tower_tokens - (r.select == FeatureSelect::drop_first ? 1 : 0);
  if (l.features.count() > 0) l.llm_tokens = checked_add(l.llm_tokens, l.features.count() - l.patches.count());
  return l;
}

constexpr ImageLayout layout(const Llava& r, ImageSize image) { return square_layout(r, image); }

/// Every picture becomes one square of fixed size.
inline std::vector<Llava> lower(const Llava&, const ImageLayout&) { return {}; }
inline std::string limit_line(const Llava&) { return {}; }

}  // namespace vlmest::image_processor
