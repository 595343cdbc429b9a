// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/pixtral.hpp>

namespace vlmest::image_processor {

/// LightOnOCR: Pixtral's rule, whose sides are whole cells of the image processor's own patch_size. Rows and columns of
/// patches that fill no square of merge by merge are seen by the tower and left out of the sequence. No marker tokens.
struct LightOnOcr {
  std::int64_t patch_size = 14;
  std::int64_t longest_edge = 1540;
  std::int64_t merge = 2;
  std::int64_t cell = 14;  ///< patch_size of the image processor
};

/// transformers 5.17 processing_lighton_ocr.py, LightOnOcrProcessor.replace_image_token; modeling_lighton_ocr.py,
/// LightOnOcrPatchMerger. Throws Error where no square is left.
inline ImageLayout layout(const LightOnOcr& r, ImageSize image) {
  check("patch_size", r.patch_size);
  check("spatial_merge_size", r.merge, 1, 64);
  if (r.cell % r.patch_size != 0)
    throw Error("image processor: patch_size", std::to_string(r.cell) + " is no multiple of the tower's patches",
                "give a multiple of " + std::to_string(r.patch_size));
  ImageLayout l;
  l.resized = fit_to_cells(image, r.longest_edge, r.cell);
  l.patches = {l.resized.height / r.patch_size, l.resized.width / r.patch_size};
  l.tower_tokens = l.patches.count();
  l.llm_tokens = l.patches.rows / r.merge * (l.patches.cols / r.merge);
  if (l.llm_tokens == 0)
    throw Error("image size",
                std::to_string(image.height) + "x" + std::to_string(image.width) + " fills no square of merged patches",
                "use at least " + std::to_string(r.merge * r.patch_size) + " pixels a side");
  return l;
}

inline std::vector<LightOnOcr> lower(const LightOnOcr& r, const ImageLayout& l) { return lower_edge(r, l, r.cell); }
inline std::string limit_line(const LightOnOcr& r) { return edge_line(r.longest_edge); }

}  // namespace vlmest::image_processor
