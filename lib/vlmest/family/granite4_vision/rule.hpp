// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/anyres.hpp>
#include <vlmest/nn/image_processor/levers.hpp>

namespace vlmest::image_processor {

/// Granite 4 Vision: LLaVA-NeXT's canvases and tiles, each tile with fewer features than patches. Defaults:
/// Granite4VisionConfig.
struct Granite4Vision {
  std::int64_t image_size = 384;
  std::int64_t patch_size = 16;
  bool class_token = false;
  FeatureSelect select = FeatureSelect::full;
  std::vector<ImageSize> pinpoints{{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  Grid tile{12, 12};  ///< features of one: downsample_rate of its patches along each side
};

/// transformers 5.17 processing_granite4_vision.py, _get_number_of_features; modeling_granite4_vision.py,
/// pack_image_features.
inline ImageLayout layout(const Granite4Vision& r, ImageSize image) {
  ImageLayout l = anyres(image, r.pinpoints, r.image_size, r.patch_size, r.class_token, r.select, r.tile);
  l.llm_tokens = r.tile.count() + l.kept.count() + l.kept.rows;
  return l;
}

inline std::vector<Granite4Vision> lower(const Granite4Vision& r, const ImageLayout& l) { return lower_canvas(r, l); }
inline std::string limit_line(const Granite4Vision& r) { return canvas_line(r.pinpoints); }

}  // namespace vlmest::image_processor
