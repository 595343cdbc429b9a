// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/qwen_video.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/nn/image_processor/windows.hpp>

namespace vlmest::image_processor {

/// Qwen2.5-VL: Qwen2-VL's sizes, with window attention in most layers of the tower.
struct Qwen2_5Vl {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  /// Limits of the released preprocessor_config.json.
  PixelBudget budget{3136, 12845056};
  /// The checkpoints have no file for videos: preprocessor_config.json sets these too, of each frame. The class samples
  /// nothing by itself.
  VideoLimits video{.budget = {3136, 12845056}, .max_video_tokens = 128000};
  std::int64_t temporal_patch_size = 2;
  std::int64_t window_size = 112;  ///< pixels
};

/// transformers 5.17 processing_qwen2_5_vl.py, replace_image_token; image_processing_qwen2_vl.py.
inline ImageLayout layout(const Qwen2_5Vl& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  return merged_patches(smart_resize(image, r.patch_size * r.merge, r.budget), r.patch_size, r.merge);
}

/// The windows of a picture that `layout` laid out.
constexpr WindowGrid windows(const Qwen2_5Vl& r, const ImageLayout& l) {
  return window_grid(l.patches, r.window_size, r.patch_size, r.merge);
}

inline ImageLayout video_layout(const Qwen2_5Vl& r, const VideoSource& v) {
  return qwen2_video(r.video, v, r.patch_size, r.merge, r.temporal_patch_size);
}
inline OwnSampling own_sampling(const Qwen2_5Vl& r) { return {r.video.fps, r.video.max_frames}; }

inline std::vector<Qwen2_5Vl> lower(const Qwen2_5Vl& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const Qwen2_5Vl& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
