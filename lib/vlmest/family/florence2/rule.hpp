// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// Florence-2: every picture is stretched to one square; a feature for each place of the tower's last map, and one for
/// their mean.
struct Florence2 {
  std::int64_t image_size = 768;
  Grid map{24, 24};  ///< of the tower's last stage
};

/// transformers 5.17 processing_florence2.py, replace_image_token; modeling_florence2.py, Florence2MultiModalProjector.
/// The tokens that begin and end the text (prepare_inputs_layout) are text.
inline ImageLayout layout(const Florence2& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = r.map;
  l.tower_tokens = l.patches.count();
  l.llm_tokens = checked_add(l.tower_tokens, 1);
  return l;
}

inline std::vector<Florence2> lower(const Florence2&, const ImageLayout&) { return {}; }
inline std::string limit_line(const Florence2&) { return ""; }

}  // namespace vlmest::image_processor
