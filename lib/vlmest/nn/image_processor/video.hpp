// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/unit/count.hpp>

/// Videos as processors of transformers 5.17 take them: which frames, when each of them was, and what is written about
/// that. A rule that takes videos has, beside its struct (nn/image_processor/processor.hpp),
///   - video_layout(rule, VideoSource): frames, patches and tokens of one video. Throws Error for what the processor
///   refuses;
///   - own_sampling(rule): what its processor samples where nobody says it.
namespace vlmest {

/// A video as it reaches a processor.
struct VideoSource {
  ImageSize size;              ///< of a frame
  std::int64_t frames = 0;     ///< there are
  double fps = 0;              ///< at which they follow one another (VideoMetadata.fps)
  std::optional<double> take;  ///< a second, of a video to be sampled; not given: all frames are taken

  double seconds() const { return static_cast<double>(frames) / fps; }
};

/// Frames a second that a processor samples by itself, or nothing, and the most that it ever takes.
struct OwnSampling {
  std::optional<double> fps;
  std::int64_t most_frames = 0;
  bool every_frame = false;  ///< it has no rate and samples all the same: of all frames
};

namespace image_processor {

/// More frames than any processor lets pass, and more than a graph of their attention should have.
inline constexpr std::int64_t max_frames = std::int64_t{1} << 14;

/// What checkpoints set of a video processor that samples frames and scales them by their pixels.
struct VideoLimits {
  PixelBudget budget;
  std::optional<double> fps;
  std::int64_t min_frames = 4;
  std::int64_t max_frames = 768;
  bool capped = false;                  ///< cap_pixels_per_frame
  std::int64_t max_video_tokens = 768;  ///< read with that alone
};

/// Throws Error unless there are frames of a size, in a number and at a rate that can be worked with.
inline void check(const VideoSource& v) {
  check(v.size);
  const std::int64_t most = v.take ? std::int64_t{1} << 24 : max_frames;
  if (v.frames < 1 || v.frames > most)
    throw Error("plan.video.frames", std::to_string(v.frames) + " frames are out of range",
                "give 1 to " + std::to_string(most));
  const auto rate = [](double fps) { return std::isfinite(fps) && fps >= 1e-3 && fps <= 1e3; };
  if (!rate(v.fps) || (v.take && !rate(*v.take)))
    throw Error("plan.video.fps", "frames a second are out of range", "give 0.001 to 1000");
}

/// The frames that were taken, or Error: a processor takes none, or more than there are.
inline std::int64_t check_taken(std::int64_t taken, const VideoSource& v) {
  if (taken < 1 || taken > v.frames)
    throw Error(
        "plan.video.fps",
        "the processor refuses to take " + std::to_string(taken) + " of " + std::to_string(v.frames) + " frames",
        taken < 1 ? "raise plan.video.fps, or give a longer video" : "lower plan.video.fps");
  if (taken > max_frames)
    throw Error("plan.video.fps", "the processor takes " + std::to_string(taken) + " frames",
                "give a shorter video, or a lower plan.video.fps");
  return taken;
}

/// The indices 0, 1, … of frames that are taken as they are.
inline std::vector<std::int64_t> all_frames(std::int64_t n) {
  std::vector<std::int64_t> r(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<std::int64_t>(i);
  return r;
}

/// How many frames torch.arange(0, frames, frames / n) takes, in float64 (aten/src/ATen/native/RangeFactories.cpp):
/// n, or by rounding one more, which is the index behind the last frame. The processor fails there, and so does this.
inline std::int64_t check_arange(std::int64_t n, const VideoSource& v) {
  const auto frames = static_cast<double>(v.frames);
  if (to_int(std::ceil(frames / (frames / static_cast<double>(n)))) == n) return n;
  throw Error("plan.video.fps",
              "the processor fails at " + std::to_string(n) + " of " + std::to_string(v.frames) +
                  " frames: rounding takes it one frame too far",
              "change plan.video.fps or plan.video.seconds a little");
}

/// Frames that BaseVideoProcessor.sample_frames takes (video_processing_utils.py): all, or evenly many at the rate that
/// is asked for.
inline std::int64_t evenly_taken(const VideoSource& v) {
  if (!v.take) return v.frames;
  return check_arange(check_taken(to_int(static_cast<double>(v.frames) / v.fps * *v.take), v), v);
}

/// numpy.linspace(first, last, n), before it is rounded or cut to integers.
inline std::vector<double> linspace(double first, double last, std::int64_t n) {
  std::vector<double> r(static_cast<std::size_t>(n), first);
  if (n < 2) return r;
  const double step = (last - first) / static_cast<double>(n - 1);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<double>(i) * step + first;
  r.back() = last;
  return r;
}

/// Characters of a count in decimal.
constexpr std::int64_t digits(std::int64_t n) {
  std::int64_t d = 1;
  for (; n > 9; n /= 10) ++d;
  return d;
}

/// Characters ahead of the point of f"{seconds:.1f}".
inline std::int64_t whole_digits(double seconds) {
  return std::snprintf(nullptr, 0, "%.1f", seconds) - 2;  // the point and one digit
}

/// smart_resize of Qwen3-VL and GLM-4V: a video must fill a temporal patch.
inline std::int64_t check_packed(std::int64_t taken, std::int64_t per_patch) {
  if (taken < per_patch)
    throw Error("plan.video.frames",
                std::to_string(taken) + " is less than a temporal patch holds, which the processor refuses",
                "give " + std::to_string(per_patch) + " or more");
  return taken;
}

/// The patches of a video as one sequence, merged by squares before the language model: `taken` frames at that size,
/// of which `per_patch` share a temporal patch, the last one repeated to fill it (patchify of the video processors).
inline ImageLayout packed_video(ImageSize resized, std::int64_t taken, std::int64_t patch_size, std::int64_t merge,
                                std::int64_t per_patch) {
  ImageLayout l;
  l.resized = resized;
  l.patches = {resized.height / patch_size, resized.width / patch_size};
  l.sampled = taken;
  l.frames = ceil_div(taken, per_patch);
  l.tower_tokens = checked_mul(l.patches.count(), l.frames);
  l.llm_tokens = checked_mul(merged(l.patches, merge).count(), l.frames);
  return l;
}

}  // namespace image_processor
}  // namespace vlmest
