// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// MiniMax-M3: Qwen2-VL's sizes of pictures, within limits of its own. Frames of a video keep their size.
struct MiniMaxM3Vl {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  PixelBudget budget{4 * 28 * 28, 451584};  ///< of MiniMaxM3VLImageProcessor
  std::int64_t temporal_patch_size = 2;
  double fps = 1;  ///< a second, of a video that is sampled
};

/// transformers 5.17 image_processing_minimax_m3_vl.py, smart_resize; processing_minimax_m3_vl.py, replace_image_token:
/// a token at either end.
inline ImageLayout layout(const MiniMaxM3Vl& r, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("merge_size", r.merge, 1, 64);
  ImageLayout l = merged_patches(smart_resize(image, r.patch_size * r.merge, r.budget), r.patch_size, r.merge);
  l.text_overhead = 2;
  return l;
}

/// video_processing_minimax_m3_vl.py, _preprocess: the processor passes do_resize=False, and patches must fill a frame.
/// processing_minimax_m3_vl.py, replace_video_token: "]<]12.3 seconds[>[" ahead of each temporal patch, which stands
/// between a start and an end token. The text is counted as byte-pair tokenizers cut it first (punctuation, digits by
/// threes, point, digit, word, punctuation); what the model's own tokenizer makes of it was not compared. Throws Error
/// for frames that patches do not fill.
inline ImageLayout video_layout(const MiniMaxM3Vl& r, const VideoSource& v) {
  check(v);
  const std::int64_t factor = check("patch_size", r.patch_size) * check("merge_size", r.merge, 1, 64);
  const std::int64_t per_patch = check("temporal_patch_size", r.temporal_patch_size, 1, 64);
  if (v.size.height % factor != 0 || v.size.width % factor != 0)
    throw Error("plan.video.height",
                std::to_string(v.size.height) + "x" + std::to_string(v.size.width) +
                    " frames are no whole squares of patches, and the processor does not resize frames",
                "give sides that are multiples of " + std::to_string(factor));
  const std::int64_t taken = evenly_taken(v);
  if (taken > max_frames)
    throw Error("plan.video.fps", "the processor takes " + std::to_string(taken) + " frames",
                "give a shorter video, or a lower plan.video.fps");
  ImageLayout l = packed_video(v.size, taken, r.patch_size, r.merge, per_patch);
  l.timestamps = true;
  const double step = static_cast<double>(v.frames) / static_cast<double>(taken);
  for (std::int64_t i = 0; i < l.frames; ++i) {
    const double frame = static_cast<double>(std::min(i * per_patch, taken - 1)) * step;
    l.text_overhead += 2 + 5 + ceil_div(whole_digits(static_cast<double>(to_int(frame)) / v.fps), 3);
  }
  return l;
}
inline OwnSampling own_sampling(const MiniMaxM3Vl& r) { return {r.fps, max_frames}; }

inline std::vector<MiniMaxM3Vl> lower(const MiniMaxM3Vl& r, const ImageLayout& l) { return lower_budget(r, l); }
inline std::string limit_line(const MiniMaxM3Vl& r) { return budget_line(r.budget); }

}  // namespace vlmest::image_processor
