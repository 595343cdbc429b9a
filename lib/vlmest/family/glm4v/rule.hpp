// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// GLM-4.1V, GLM-4.5V and those that follow them. A still picture fills the temporal patch with copies of itself, and
/// all copies count against the pixel limits.
struct Glm4v {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  std::int64_t temporal_patch_size = 2;
  PixelBudget budget{12544, 11760000};
  /// Of GLM-4.1V's released video_preprocessor_config.json, which are the class's own.
  VideoLimits video{.budget = {12544, 47040000}, .fps = 2};
  double max_duration = 300;      ///< seconds of a video beyond which it is sampled more sparsely; GLM-4.1V alone
  bool glm46v = false;            ///< Glm46VProcessor: GLM-4.6V and GLM-OCR
  bool glmga = false;             ///< and GlmgaVideoProcessor
  std::int64_t expand = 1;        ///< patch_expand_factor: sides are whole multiples of so many merged patches
  std::int64_t max_frames = 640;  ///< of GlmgaVideoProcessor
};

/// Sides of a picture are multiples of it.
inline std::int64_t side_factor(const Glm4v& r) {
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  check("patch_expand_factor", r.expand, 1, 64);
  return r.patch_size * r.merge * r.expand;
}

/// transformers 5.17 image_processing_glm4v.py, smart_resize; processing_glm4v.py, replace_image_token.
inline ImageLayout layout(const Glm4v& r, ImageSize image) {
  check(image);
  check("temporal_patch_size", r.temporal_patch_size, 1, 64);
  const auto factor = side_factor(r);
  image = at_least(image, factor);
  return merged_patches(smart_resize(image, factor, r.budget, r.temporal_patch_size), r.patch_size, r.merge);
}

/// Each frame once, in the order of the first of its kind, and an odd number filled up with the last one.
inline std::vector<std::int64_t> once_and_even(std::vector<std::int64_t> all) {
  std::set<std::int64_t> seen;
  std::erase_if(all, [&](std::int64_t i) { return !seen.insert(i).second; });
  if (all.size() % 2 == 1) all.push_back(all.back());
  return all;
}

/// Which frames of a video are taken, at its own rate `r.fps` where nothing else is asked for:
/// video_processing_glm4v.py, sample_frames.
inline std::vector<std::int64_t> glm4v_frames(const Glm4v& r, const VideoSource& v) {
  const std::int64_t last = v.frames - 1;
  const double duration = v.seconds(), take = *v.take;
  std::vector<std::int64_t> all;
  const auto at = [&](double place) { all.push_back(std::min(last, to_int(std::ceil(place)))); };
  if (duration <= r.max_duration) {
    const std::int64_t n = std::max<std::int64_t>(to_int(std::floor(duration * take)), 1);
    check_taken(std::min(n, v.frames), v);
    for (std::int64_t i = 0; i < n && (all.empty() || all.back() < last); ++i)
      at(static_cast<double>(i) * v.fps / take);
  } else if (const std::int64_t n = to_int(r.max_duration * take); n >= v.frames) {
    all = all_frames(check_taken(v.frames, v));
  } else {
    for (const double t : linspace(0, duration, check_taken(n, v))) at(t * v.fps);
  }
  return once_and_even(std::move(all));
}

/// `n` places from `first` to `last`, evenly, cut to integers.
inline std::vector<std::int64_t> spread_evenly(std::int64_t first, std::int64_t last, std::int64_t n) {
  std::vector<std::int64_t> all;
  for (const double x : linspace(static_cast<double>(first), static_cast<double>(last), n))
    all.push_back(to_int(std::floor(x)));
  return all;
}

/// The frames at or behind every `step` seconds up to `end`.
inline std::vector<std::int64_t> frames_by_time(const VideoSource& v, double step, double end) {
  std::vector<std::int64_t> all;
  double next = 0;
  const double frame = 1 / v.fps;
  for (std::int64_t i = 0; i < v.frames; ++i) {
    if (static_cast<double>(i) * frame < next) continue;
    next += step;
    all.push_back(i);
    if (next >= end) break;
  }
  return all;
}

/// `n` frames out of `all`: where there are fewer spread between the first and the last one, where there are more over
/// the whole video.
inline std::vector<std::int64_t> make_count(std::vector<std::int64_t> all, std::int64_t n, const VideoSource& v) {
  const auto have = static_cast<std::int64_t>(all.size());
  if (have < n)
    all = all.empty() ? spread_evenly(0, std::max<std::int64_t>(v.frames - 1, 0), n)
                      : spread_evenly(all.front(), all.back(), n);
  if (have > n) all = spread_evenly(0, v.frames - 1, n);
  return once_and_even(std::move(all));
}

inline constexpr std::int64_t most_glm46v_frames = 640;

/// video_processing_glmga.py, sample_frames.
inline std::vector<std::int64_t> glmga_frames(const Glm4v& r, const VideoSource& v) {
  const double duration = v.seconds(), take = *v.take;
  const std::int64_t n = std::min(to_int(duration * take), r.max_frames);
  check_taken(std::min(n, v.frames), v);
  std::vector<std::int64_t> all;
  if (v.frames < n)
    for (std::int64_t i = 0; i < n; ++i)
      all.push_back(to_int(std::floor(static_cast<double>(i * v.frames) / static_cast<double>(n))));
  else
    all = frames_by_time(v, 1 / take, duration - 1 / take);
  return make_count(std::move(all), n, v);
}

/// video_processing_glm46v.py, sample_frames: a rate by the video's length, whatever is asked for, and so many frames
/// again as a temporal patch holds.
inline std::vector<std::int64_t> glm46v_frames(const Glm4v& r, const VideoSource& v) {
  if (v.take != r.video.fps)
    throw Error("plan.video.fps", "this processor chooses it by the length of the video", "leave it out");
  const double duration = v.seconds(), counted = std::min(duration, 2400.0);
  const double rate = counted <= 30 ? 3 : counted <= 300 ? 1 : 0.5;
  const auto per_patch = static_cast<double>(r.temporal_patch_size);
  const std::int64_t n = std::min<std::int64_t>(to_int(counted * rate * per_patch), most_glm46v_frames);
  std::vector<std::int64_t> all = v.frames < n ? spread_evenly(0, v.frames - 1, n)
                                               : frames_by_time(v, 1 / (per_patch * rate), std::floor(duration));
  return make_count(std::move(all), n, v);
}

/// video_processing_glm4v.py, resize, and processing_glm4v.py, replace_video_token: each temporal patch between a
/// begin and an end token, followed by the second of its first frame. GLM's tokenizer takes digits by threes.
inline ImageLayout video_layout(const Glm4v& r, const VideoSource& v) {
  check(v);
  const auto factor = side_factor(r), per_patch = check("temporal_patch_size", r.temporal_patch_size, 1, 64);
  const std::vector<std::int64_t> taken = !v.take    ? all_frames(v.frames)
                                          : r.glmga  ? glmga_frames(r, v)
                                          : r.glm46v ? glm46v_frames(r, v)
                                                     : glm4v_frames(r, v);
  const auto n = check_packed(static_cast<std::int64_t>(taken.size()), per_patch);
  const ImageSize size =
      smart_resize(at_least(v.size, factor), factor, r.video.budget, n, round_div(n, per_patch) * per_patch);
  ImageLayout l = packed_video(size, n, r.patch_size, r.merge, per_patch);
  l.timestamps = true;
  for (std::int64_t i = 0; i < l.frames; ++i) {
    // Every second timestamp, whatever a temporal patch holds; the last one where there are too few.
    const std::size_t at = std::min(static_cast<std::size_t>(2 * i), (taken.size() - 1) / 2 * 2);
    const double seconds = static_cast<double>(taken[at]) / v.fps;
    l.text_overhead += 2 + (r.glm46v ? ceil_div(whole_digits(seconds), 3) + 3 : ceil_div(digits(to_int(seconds)), 3));
  }
  return l;
}
inline OwnSampling own_sampling(const Glm4v& r) {
  if (r.glmga) return {r.video.fps, r.max_frames};
  return {r.video.fps, r.glm46v ? most_glm46v_frames : to_int(r.max_duration * r.video.fps.value_or(2))};
}

inline std::vector<Glm4v> lower(const Glm4v& r, const ImageLayout& l) {
  return lower_budget(r, l, r.temporal_patch_size);
}
inline std::string limit_line(const Glm4v& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
