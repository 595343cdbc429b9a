// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>

namespace vlmest::image_processor {

/// HunYuan-VL: Qwen2-VL's sizes; a token stands behind each row of merged patches, and one at either end of a picture.
struct HunYuan {
  std::int64_t patch_size = 16;
  std::int64_t merge = 2;
  PixelBudget budget{512 * 512, 2048 * 2048};  ///< HunYuanVLImageProcessor's own
};

/// transformers 5.17 image_processing_hunyuan_vl.py, smart_resize; processing_hunyuan_vl.py, replace_image_token. The
/// start and end tokens around them are the prompt's.
inline ImageLayout layout(const HunYuan& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  ImageLayout l = merged_patches(smart_resize(image, r.patch_size * r.merge, r.budget), r.patch_size, r.merge);
  l.llm_tokens += l.patches.rows / r.merge + 2;
  return l;
}

inline std::vector<HunYuan> lower(const HunYuan& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const HunYuan& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
