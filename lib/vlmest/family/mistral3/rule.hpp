// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>

namespace vlmest::image_processor {

/// Mistral Small 3.1 and later: Pixtral's rule with patches merged before the projector.
struct Mistral3 {
  std::int64_t patch_size = 14;
  std::int64_t longest_edge = 1540;
  std::int64_t merge = 2;
};

/// transformers 5.17 processing_pixtral.py (spatial_merge_size); modeling_mistral3.py, Mistral3PatchMerger.
inline ImageLayout layout(const Mistral3& r, ImageSize image) {
  return native_rows(image, r.longest_edge, r.patch_size, r.merge);
}

inline std::vector<Mistral3> lower(const Mistral3& r, const ImageLayout& l) {
  return lower_edge(r, l, r.patch_size * r.merge);
}
inline std::string limit_line(const Mistral3& r) { return edge_line(r.longest_edge); }

}  // namespace vlmest::image_processor
