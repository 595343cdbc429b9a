// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/anyres.hpp>
#include <vlmest/nn/image_processor/levers.hpp>

namespace vlmest::image_processor {

/// LLaVA-NeXT (1.6): the best canvas of a list cut into tiles, padding removed from the features, one newline feature
/// after each row, and the whole picture as one more tile in front.
struct LlavaNext {
  std::int64_t image_size = 336;
  std::int64_t patch_size = 14;
  bool class_token = true;
  FeatureSelect select = FeatureSelect::drop_first;
  std::vector<ImageSize> pinpoints{{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  Grid features{};  ///< of one tile where a block resamples them
};

/// transformers 5.17 processing_llava_next.py, _get_number_of_features; modeling_llava_next.py, pack_image_features.
inline ImageLayout layout(const LlavaNext& r, ImageSize image) {
  auto l = anyres(image, r.pinpoints, r.image_size, r.patch_size, r.class_token, r.select, r.features);
  l.llm_tokens = feature_grid(l).count() + l.kept.count() + l.kept.rows;
  return l;
}

inline std::vector<LlavaNext> lower(const LlavaNext& r, const ImageLayout& l) { return lower_canvas(r, l); }
inline std::string limit_line(const LlavaNext& r) { return canvas_line(r.pinpoints); }

}  // namespace vlmest::image_processor
