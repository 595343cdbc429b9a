// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// VideoLLaMA 3: Qwen2-VL's sizes, pictures unmerged, frames merged by squares of two.
struct VideoLlama3 {
  std::int64_t patch_size = 14;
  std::int64_t merge = 1;
  PixelBudget budget{56 * 56, 28 * 28 * 1280};  ///< VideoLlama3ImageProcessor's own
  std::int64_t video_merge = 2;
  /// VideoLlama3VideoProcessor's own: the most pixels of all frames together, the least of each.
  VideoLimits video{.budget = {128 * 28 * 28, 28 * 28 * 768}, .max_frames = 180};
};

/// transformers 5.17 image_processing_video_llama_3.py, smart_resize; processing_video_llama_3.py, replace_image_token.
inline ImageLayout layout(const VideoLlama3& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  return merged_patches(smart_resize(image, r.patch_size * r.merge, r.budget), r.patch_size, r.merge);
}

/// video_processing_video_llama_3.py, sample_frames: at the rate that is asked for, no more frames than there are.
inline std::vector<std::int64_t> video_llama_3_frames(const VideoLlama3& r, const VideoSource& v) {
  if (!v.take) return all_frames(v.frames);
  const std::int64_t most = std::min(r.video.max_frames, v.frames);
  double n = static_cast<double>(v.frames) / v.fps * *v.take;
  n = std::min(
      {std::max(n, static_cast<double>(r.video.min_frames)), static_cast<double>(most), static_cast<double>(v.frames)});
  const std::int64_t taken = check_arange(check_taken(to_int(std::floor(n)), v), v);
  const double step = static_cast<double>(v.frames) / static_cast<double>(taken);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < taken; ++i) all.push_back(to_int(static_cast<double>(i) * step));
  return all;
}

/// video_processing_video_llama_3.py, resize: a frame's share of the most pixels; processing_video_llama_3.py,
/// replace_video_token: "Time 12.3s:" before each frame and a comma between two. A token for each piece that Qwen2's
/// pre-tokenizer cuts this text into: the word (with the comma before it), a space, digits, the point, "s" and the
/// colon. All tokens of a frame are counted: which of them the processor drops depends on what the video shows
/// (use_token_compression).
inline ImageLayout video_layout(const VideoLlama3& r, const VideoSource& v) {
  check(v);
  const std::vector<std::int64_t> frames = video_llama_3_frames(r, v);
  const auto n = static_cast<std::int64_t>(frames.size());
  const std::int64_t factor = check("patch_size", r.patch_size) * check("merge_size", r.video_merge, 1, 64);
  PixelBudget each = r.video.budget;
  each.max_pixels /= n;
  if (each.max_pixels < 1)
    throw Error("plan.video.frames", "no pixel is left for a frame", "give fewer frames, or raise the pixel limits");
  ImageLayout l = packed_video(resize_between(v.size, factor, each), n, r.patch_size, r.video_merge, 1);
  for (const std::int64_t i : frames) l.text_overhead += 6 + whole_digits(static_cast<double>(i) / v.fps);
  return l;
}
inline OwnSampling own_sampling(const VideoLlama3& r) { return {r.video.fps, r.video.max_frames}; }

inline std::vector<VideoLlama3> lower(const VideoLlama3& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const VideoLlama3& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
