// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>

namespace vlmest::image_processor {

/// dots.ocr: native aspect ratio, sides rounded to whole merged patches.
struct DotsOcr {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  PixelBudget budget{3136, 11289600};  ///< of the released preprocessor_config.json
};

/// Its DotsVLProcessor is transformers' Qwen2_5_VLProcessor over Qwen2VLImageProcessor: processing_qwen2_5_vl.py,
/// image_processing_qwen2_vl.py.
inline ImageLayout layout(const DotsOcr& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  return merged_patches(smart_resize(image, r.patch_size * r.merge, r.budget), r.patch_size, r.merge);
}

inline std::vector<DotsOcr> lower(const DotsOcr& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const DotsOcr& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
