// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include <vlmest/nn/image_processor/windows.hpp>
#include <vlmest/nn/vision/packed_attention.hpp>

/// Attention of packed patches inside square windows.
namespace vlmest {

/// Of what size, as transformers' vision_utils.py counts it.
struct PatchWindows {
  std::int64_t window_size = 0;  ///< pixels along a side
  std::int64_t patch_size = 0;
  std::int64_t merge = 1;  ///< side of the squares of patches that stay together
};

/// vision_utils.py, get_vision_window_index: the permutation is worked out on the host; only the boundaries, one per
/// window of the padded grid, go to the device, where those of empty windows drop out.
inline Segments window_segments(Context& c, const PatchWindows& g, const Value& grid,
                                std::span<const ImageLayout> images) {
  using namespace eager;
  to_host(grid);
  Segments s;
  std::int64_t boundaries = 1;
  for (const auto& i : images) {
    const image_processor::WindowGrid w = image_processor::window_grid(i.patches, g.window_size, g.patch_size, g.merge);
    // Sides that divide are padded by a whole window too: pad = side - size mod side.
    const auto padded = [&](std::int64_t patches) { return patches / w.side + 1; };
    const std::int64_t grid_windows = checked_mul(padded(i.patches.rows), padded(i.patches.cols));
    boundaries = checked_add(boundaries, checked_mul(grid_windows, i.frames));
    if (checked_mul(w.count(), i.frames) > image_processor::max_windows)
      throw Error("plan.video.frames", "more windows than " + std::to_string(image_processor::max_windows),
                  "give fewer or smaller frames");
    for (std::int64_t frame = 0; frame < i.frames; ++frame)
      for (std::int64_t row = 0; row < w.windows.rows; ++row)
        for (std::int64_t col = 0; col < w.windows.cols; ++col) s.lengths.push_back(w.length(row, col));
  }
  Value all = from_host(c.b, {boundaries}, DType::int32);
  s.cu_seqlens = unique_consecutive(all, static_cast<std::int64_t>(s.lengths.size()) + 1);
  return s;
}

}  // namespace vlmest
