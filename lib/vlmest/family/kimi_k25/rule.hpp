// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>

namespace vlmest::image_processor {

/// Kimi-K2.5: a picture keeps its size where it has no more patches than allowed, in all and on a side; it is never
/// enlarged, and filled up to whole merged patches.
struct KimiK25 {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  std::int64_t max_patches = 16384;
  std::int64_t max_height = 512;  ///< of size, which counts patches, of either side
};

/// transformers 5.17 image_processing_kimi_k25.py, navit_resize; processing_kimi_k25.py, replace_image_token: the
/// tokens around a picture are the prompt's.
inline ImageLayout layout(const KimiK25& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  check("max_patches", r.max_patches, 1, std::int64_t{1} << 40);
  const std::int64_t most = check("max_height", r.max_height) * r.patch_size, factor = r.patch_size * r.merge;
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const auto patches = [&](std::int64_t side) {
    return static_cast<double>(std::max<std::int64_t>(side / r.patch_size, 1));
  };
  const double by_patches =
      std::sqrt(static_cast<double>(r.max_patches) / (patches(image.height) * patches(image.width)));
  const double scale = std::min({1.0, by_patches, static_cast<double>(most) / h, static_cast<double>(most) / w});
  const auto side = [&](double length) {
    const std::int64_t shrunk = std::max<std::int64_t>(to_int(length * scale), 1);
    return ceil_div(std::min(shrunk, most), factor) * factor;
  };
  return merged_patches({side(h), side(w)}, r.patch_size, r.merge);
}

inline std::vector<KimiK25> lower(const KimiK25& r, const ImageLayout& now) {
  std::vector<KimiK25> all;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    KimiK25 less = r;
    less.max_patches = std::max<std::int64_t>(now.patches.count() * k / lever_steps, r.merge * r.merge);
    all.push_back(less);
  }
  return all;
}
inline std::string limit_line(const KimiK25& r) { return number_line("max_patches", r.max_patches); }

}  // namespace vlmest::image_processor
