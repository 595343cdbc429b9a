// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/unit/count.hpp>

namespace vlmest::image_processor {

/// PaddleOCR-VL: native aspect ratio, sides rounded to whole merged patches; a picture with a side below one of them is
/// enlarged first.
struct PaddleOcr {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  PixelBudget budget{384 * 384, 1536 * 1536};  ///< PaddleOCRVLImageProcessor's own
};

/// transformers 5.17 image_processing_paddleocr_vl.py, smart_resize; processing_paddleocr_vl.py, replace_image_token.
inline ImageLayout layout(const PaddleOcr& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  const std::int64_t factor = r.patch_size * r.merge;
  const auto grown = [&](std::int64_t longer, std::int64_t shorter) {
    return round_div(checked_mul(longer, factor), shorter);
  };
  if (image.height < factor) image = {factor, grown(image.width, image.height)};
  if (image.width < factor) image = {grown(image.height, image.width), factor};
  return merged_patches(smart_resize(image, factor, r.budget), r.patch_size, r.merge);
}

inline std::vector<PaddleOcr> lower(const PaddleOcr& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const PaddleOcr& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
