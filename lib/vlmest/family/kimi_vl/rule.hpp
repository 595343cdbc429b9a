// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>

namespace vlmest::image_processor {

/// Kimi-VL: a picture keeps its size unless it has more whole patches than allowed; it is never enlarged, and filled up
/// to whole merged patches. Defaults: the released processors' settings.
struct KimiVl {
  std::int64_t patch_size = 14;
  std::int64_t merge_rows = 2;
  std::int64_t merge_cols = 2;
  std::int64_t in_token_limit = 4096;  ///< patches
  bool pad_input = true;               ///< else cut to whole patches, which merge only where their number divides
};

/// image_processing_kimi_vl.py, KimiVLImageProcessor.rescale, as the checkpoints bring it; processing_kimi_vl.py: the
/// tokens around a picture are the prompt's. Throws Error for pictures that it or the tower refuses.
inline ImageLayout layout(const KimiVl& r, ImageSize image) {
  check(image);
  const std::int64_t p = check("patch_size", r.patch_size);
  check("merge_kernel_size", r.merge_rows, 1, 64);
  check("merge_kernel_size", r.merge_cols, 1, 64);
  check("in_token_limit", r.in_token_limit, 1, std::int64_t{1} << 40);
  const std::string given = std::to_string(image.height) + "x" + std::to_string(image.width);
  const std::int64_t whole = (image.width / p) * (image.height / p);
  ImageSize now = image;
  if (whole > r.in_token_limit) {
    const double scale = std::sqrt(static_cast<double>(r.in_token_limit) / static_cast<double>(whole));
    now = {to_int(static_cast<double>(image.height) * scale), to_int(static_cast<double>(image.width) * scale)};
  }
  if (now.height < 1 || now.width < 1)
    throw Error("image size", given + " shrinks to nothing", "use a less extreme aspect ratio");
  if (r.pad_input) {
    now.height = ceil_div(now.height, r.merge_rows * p) * r.merge_rows * p;
    now.width = ceil_div(now.width, r.merge_cols * p) * r.merge_cols * p;
  }
  ImageLayout l;
  l.patches = {now.height / p, now.width / p};
  l.resized = {l.patches.rows * p, l.patches.cols * p};
  l.tower_tokens = l.patches.count();
  if (l.patches.rows >= 512 || l.patches.cols >= 512)
    throw Error("image size", given + " has a side of 512 patches or more, which the processor refuses",
                "use a less extreme aspect ratio");
  if (l.patches.count() == 0 || l.patches.rows % r.merge_rows != 0 || l.patches.cols % r.merge_cols != 0)
    throw Error("image size",
                given + " is cut to " + std::to_string(l.patches.rows) + "x" + std::to_string(l.patches.cols) +
                    " patches, which the tower cannot merge",
                "set pad_input, as the released processors do");
  l.llm_tokens = l.patches.rows / r.merge_rows * (l.patches.cols / r.merge_cols);
  return l;
}

inline std::vector<KimiVl> lower(const KimiVl& r, const ImageLayout& now) {
  std::vector<KimiVl> all;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    KimiVl less = r;
    less.in_token_limit = std::max<std::int64_t>(now.patches.count() * k / lever_steps, r.merge_rows * r.merge_cols);
    all.push_back(less);
  }
  return all;
}
inline std::string limit_line(const KimiVl& r) { return number_line("in_token_limit", r.in_token_limit); }

}  // namespace vlmest::image_processor
