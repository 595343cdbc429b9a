// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/slices.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// MiniCPM-V 2.6: every piece of a picture, of whatever size, becomes as many tokens as the resampler has queries.
/// Defaults: the released processor's settings.
struct MiniCpmV {
  std::int64_t patch_size = 14;
  std::int64_t scale = 448;  ///< scale_resolution
  std::int64_t max_tiles = 9;
  std::int64_t queries = 64;  ///< image_feature_size
  bool image_ids = true;      ///< use_image_id: each picture's number stands before it
};

/// Rows and columns of the resampler's table of positions (resampler.py, Resampler, max_size).
inline constexpr std::int64_t resampler_side = 70;

/// image_processing_minicpmv.py, slice_image and get_slice_image_placeholder, with the picture's number, which is one
/// digit of the first ten. Throws Error for pictures with a piece that is longer than the table: the resampler makes a
/// new one then out of sizes on the GPU, which numpy does not take.
inline ImageLayout layout(const MiniCpmV& r, ImageSize image) {
  check("query_num", r.queries, 1, 1 << 16);
  ImageLayout l = sliced_layout(r.scale, r.patch_size, r.patch_size, {r.max_tiles, Tiling::automatic}, image,
                                [&](Grid) { return r.queries; });
  for (const Grid& g : {l.patches, l.slices})
    if (g.rows > resampler_side || g.cols > resampler_side)
      throw Error("image size",
                  std::to_string(image.height) + "x" + std::to_string(image.width) + " becomes " +
                      std::to_string(g.rows) + "x" + std::to_string(g.cols) +
                      " patches, but the resampler's table of positions has " + std::to_string(resampler_side) +
                      " of a side",
                  "use a less extreme aspect ratio");
  if (r.image_ids) l.text_overhead += 2 + 1;
  return l;
}
inline std::vector<ImageLayout> layouts(const MiniCpmV& r, std::span<const ImageSize> sizes) {
  std::vector<ImageLayout> all;
  for (const ImageSize s : sizes) {
    ImageLayout l = layout(r, s);
    if (r.image_ids) l.text_overhead += digits(static_cast<std::int64_t>(all.size())) - 1;
    all.push_back(l);
  }
  return all;
}

inline std::vector<MiniCpmV> lower(const MiniCpmV& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const MiniCpmV& r) { return number_line("max_slice_nums", r.max_tiles); }

}  // namespace vlmest::image_processor
