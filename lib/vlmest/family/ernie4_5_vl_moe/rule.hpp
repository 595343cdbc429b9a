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
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// ERNIE 4.5 VL: pictures and frames keep their shape, sides rounded to whole merged patches; two frames of a video
/// become one grid of tokens. Defaults: Ernie4_5_VLMoeImageProcessor, Ernie4_5_VLMoeVideoProcessor.
struct Ernie4_5Vl {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  PixelBudget budget{56 * 56, 28 * 28 * 6177};
  VideoLimits video{.budget = {299 * 28 * 28, 1196 * 28 * 28}, .min_frames = 16, .max_frames = 180};  ///< of each frame

  static constexpr std::int64_t frames_merged = 2;  ///< the only temporal_patch_size that the class lets pass
};

inline ImageSize ernie_size(const Ernie4_5Vl& r, ImageSize image, PixelBudget budget) {
  check(image);
  return smart_resize(image, check("patch_size", r.patch_size) * check("merge_size", r.merge, 1, 64), budget);
}

/// transformers 5.17 image_processing_ernie4_5_vl_moe.py, smart_resize; processing_ernie4_5_vl_moe.py,
/// replace_image_token: the tokens at either end are the prompt's.
inline ImageLayout layout(const Ernie4_5Vl& r, ImageSize image) {
  return merged_patches(ernie_size(r, image, r.budget), r.patch_size, r.merge);
}

/// video_processing_ernie4_5_vl_moe.py, sample_frames: how many frames torch.arange(0, frames, frames / n) takes, where
/// n, within the limits, need not be whole. Where rounding takes it to the index behind the last frame, the processor
/// fails.
inline std::int64_t ernie_frames(const VideoLimits& limits, const VideoSource& v) {
  if (!v.take) return v.frames;
  const auto all = static_cast<double>(v.frames);
  const double wanted = *v.take == v.fps ? all : all / v.fps * *v.take;
  const double n =
      std::min({std::max(wanted, static_cast<double>(limits.min_frames)), static_cast<double>(limits.max_frames), all});
  const double step = all / n;
  const std::int64_t taken = to_int(std::ceil(all / step));
  return to_int(static_cast<double>(taken - 1) * step) < v.frames ? check_taken(taken, v) : check_arange(taken - 1, v);
}

/// video_processing_ernie4_5_vl_moe.py, _prepare_input_videos: an odd number of frames is filled up with the last one;
/// processing_ernie4_5_vl_moe.py, replace_video_token.
inline ImageLayout video_layout(const Ernie4_5Vl& r, const VideoSource& v) {
  check(v);
  const std::int64_t taken = ernie_frames(r.video, v);
  const std::int64_t pairs = ceil_div(taken, r.frames_merged);
  ImageLayout l = packed_video(ernie_size(r, v.size, r.video.budget), checked_mul(pairs, r.frames_merged), r.patch_size,
                               r.merge, 1);
  l.sampled = taken;
  l.llm_tokens /= r.frames_merged;
  return l;
}
inline OwnSampling own_sampling(const Ernie4_5Vl& r) {
  return {.fps = r.video.fps, .most_frames = r.video.max_frames, .every_frame = !r.video.fps};
}

inline std::vector<Ernie4_5Vl> lower(const Ernie4_5Vl& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const Ernie4_5Vl& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
