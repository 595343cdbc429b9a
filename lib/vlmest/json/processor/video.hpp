// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/processor/pixel_budget.hpp>
#include <vlmest/nn/image_processor/video.hpp>

/// Video processors' keys: those that say which frames are taken, and of how many pixels.
namespace vlmest::json {

/// Keys of every video processor that leave token counts as they are.
inline void ignore_video_keys(ProcessorKeys& k) {
  ignore_pixel_keys(k);
  k.ignore({"do_sample_frames", "return_metadata", "video_metadata", "video_token", "crop_size", "do_center_crop",
            "num_additional_image_tokens", "image_token"});
}

/// Frames a second that are taken; `absent` where nothing says so.
inline std::optional<double> read_rate(ProcessorKeys& k, std::optional<double> absent) {
  const std::optional<double> fps = k.given("fps") ? std::optional(k.number("fps", 2)) : absent;
  if (fps && !(*fps >= 1e-3 && *fps <= 1e3)) k.fail("fps", "frames a second are out of range");
  return fps;
}
/// A number of frames in the file would be taken in the place of every rate.
inline void refuse_num_frames(ProcessorKeys& k) {
  if (k.given("num_frames"))
    k.fail("num_frames", "a fixed number of frames is not known here",
           "leave it out, and hand the frames over: plan.video.frames");
}

/// video_processing_qwen2_vl.py and video_processing_qwen3_vl.py; `absent` are the class's own.
template <class Rule>
void read_qwen_video_keys(ProcessorKeys& k, Rule& rule, const image_processor::VideoLimits& absent, bool old_names) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.spatial_merge_size");
  k.same("temporal_patch_size", rule.temporal_patch_size, "vision_config.temporal_patch_size");
  image_processor::VideoLimits& v = rule.video;
  read_budget(k, v.budget, absent.budget, old_names);
  v.fps = read_rate(k, absent.fps);
  refuse_num_frames(k);
  v.min_frames = k.integer("min_frames", absent.min_frames, 1, image_processor::max_frames);
  v.max_frames = k.integer("max_frames", absent.max_frames, v.min_frames, 1 << 24);
  v.capped = k.boolean("cap_pixels_per_frame", false);
  v.max_video_tokens = k.integer("max_video_tokens", absent.max_video_tokens, 1, 1 << 30);
  k.ignore({"use_token_compression", "max_image_size", "max_duration"});  // unused there
}

/// Qwen2VLVideoProcessor's own settings.
inline const image_processor::VideoLimits qwen2_video_class{.budget = {128 * 28 * 28, 768 * 28 * 28},
                                                            .max_video_tokens = 128000};

/// Qwen3VLVideoProcessor, whose __init__ knows `size` alone.
inline void read_video_keys(ProcessorKeys& k, image_processor::Qwen3Vl& rule) {
  read_qwen_video_keys(k, rule, {.budget = {128 * 32 * 32, 768 * 32 * 32}, .fps = 2}, false);
}

}  // namespace vlmest::json
