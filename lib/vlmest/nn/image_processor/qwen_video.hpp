// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/nn/image_processor/video.hpp>

/// The two video processors of the Qwen line (transformers 5.17).
namespace vlmest::image_processor {

/// Python's int(x * 1.05) of the least pixels, and other products with a fraction.
constexpr std::int64_t scaled(std::int64_t pixels, double by) { return to_int(static_cast<double>(pixels) * by); }

/// Qwen2-VL and Qwen2.5-VL, video_processing_qwen2_vl.py: limits of each frame, whole temporal patches where frames are
/// sampled; the processors write no token beside the placeholders.
inline ImageLayout qwen2_video(const VideoLimits& limits, const VideoSource& v, std::int64_t patch_size,
                               std::int64_t merge, std::int64_t per_patch) {
  check(v);
  check("temporal_patch_size", per_patch, 1, 64);
  std::int64_t taken = v.frames;
  if (v.take) {  // sample_frames
    const std::int64_t most = std::min(limits.max_frames, v.frames) / per_patch * per_patch;
    double n = static_cast<double>(v.frames) / v.fps * *v.take;
    n = std::min({std::max(n, static_cast<double>(limits.min_frames)), static_cast<double>(most),
                  static_cast<double>(v.frames)});
    const std::int64_t whole = to_int(std::floor(n / static_cast<double>(per_patch))) * per_patch;
    taken = check_arange(check_taken(whole, v), v);
  }
  const std::int64_t factor = check("patch_size", patch_size) * check("merge_size", merge, 1, 64);
  PixelBudget budget = limits.budget;
  if (limits.capped) {  // resize
    const std::int64_t whole = scaled(checked_mul(limits.max_video_tokens, factor * factor), 0.9);
    budget.max_pixels =
        std::max(std::min(budget.max_pixels, checked_mul(whole, per_patch) / taken), scaled(budget.min_pixels, 1.05));
  }
  return packed_video(smart_resize(v.size, factor, budget), taken, patch_size, merge, per_patch);
}

/// Qwen3-VL and Qwen3.5, video_processing_qwen3_vl.py: limits of all frames together. Ahead of each temporal patch the
/// processor writes "<12.3 seconds>", a token for each character but the word, and puts it between a start and an end
/// token (processing_qwen3_vl.py, replace_video_token).
inline ImageLayout qwen3_video(const VideoLimits& limits, const VideoSource& v, std::int64_t patch_size,
                               std::int64_t merge, std::int64_t per_patch) {
  check(v);
  check("temporal_patch_size", per_patch, 1, 64);
  std::vector<std::int64_t> frames;
  if (v.take) {  // sample_frames
    std::int64_t n = to_int(static_cast<double>(v.frames) / v.fps * *v.take);
    n = std::min({std::max(n, limits.min_frames), limits.max_frames, v.frames});
    for (const double x : linspace(0, static_cast<double>(v.frames - 1), check_taken(n, v)))
      frames.push_back(std::llrint(x));  // to nearest, ties to even
  } else {
    frames = all_frames(v.frames);
  }
  const auto taken = check_packed(static_cast<std::int64_t>(frames.size()), per_patch);
  const std::int64_t factor = check("patch_size", patch_size) * check("merge_size", merge, 1, 64);
  PixelBudget budget = limits.budget;
  if (limits.capped) {  // resize
    const std::int64_t frame =
        std::max(std::min(checked_mul(limits.max_video_tokens, factor * factor), budget.max_pixels / taken),
                 scaled(budget.min_pixels, 1.05));
    budget.max_pixels = checked_mul(frame, taken);
  }
  const ImageSize size =
      smart_resize(at_least(v.size, factor), factor, budget, taken, round_div(taken, per_patch) * per_patch);
  ImageLayout l = packed_video(size, taken, patch_size, merge, per_patch);
  l.timestamps = true;
  const auto seconds = [&](std::int64_t i) {
    return static_cast<double>(frames[static_cast<std::size_t>(std::min(i, taken - 1))]) / v.fps;
  };
  for (std::int64_t i = 0; i < l.frames; ++i) {
    const double middle = (seconds(i * per_patch) + seconds((i + 1) * per_patch - 1)) / 2;
    l.text_overhead += 2 + 5 + whole_digits(middle);  // < . digit " seconds" >
  }
  return l;
}

}  // namespace vlmest::image_processor
