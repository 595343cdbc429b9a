// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/qwen_video.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>

namespace vlmest::image_processor {

/// Qwen3-VL: native aspect ratio, sides rounded to whole merged patches.
struct Qwen3Vl {
  std::int64_t patch_size = 16;
  std::int64_t merge = 2;
  /// Limits of the released preprocessor_config.json (shortest_edge, longest_edge: pixel counts).
  PixelBudget budget{65536, 16777216};
  /// Those of the released video_preprocessor_config.json, of all frames together.
  VideoLimits video{.budget = {4096, 25165824}, .fps = 2};
  std::int64_t temporal_patch_size = 2;
};

/// transformers 5.17 processing_qwen3_vl.py, replace_image_token; image_processing_qwen2_vl.py.
inline ImageLayout layout(const Qwen3Vl& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  return merged_patches(smart_resize(image, r.patch_size * r.merge, r.budget), r.patch_size, r.merge);
}

inline ImageLayout video_layout(const Qwen3Vl& r, const VideoSource& v) {
  return qwen3_video(r.video, v, r.patch_size, r.merge, r.temporal_patch_size);
}
inline OwnSampling own_sampling(const Qwen3Vl& r) { return {r.video.fps, r.video.max_frames}; }

inline std::vector<Qwen3Vl> lower(const Qwen3Vl& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const Qwen3Vl& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
