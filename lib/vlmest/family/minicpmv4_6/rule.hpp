// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/slices.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// MiniCPM-V 4.6: a picture at about scale_resolution squared pixels, and where it has more of them slices of the same
/// area at their own size.
struct MiniCpm {
  std::int64_t patch_size = 14;
  std::int64_t scale = 448;  ///< scale_resolution
  std::int64_t max_tiles = 9;
  Tiling tiling = Tiling::automatic;
  bool image_ids = true;  ///< use_image_id: each picture's number stands before it
  Slicing video;
  std::int64_t max_frames = 128;  ///< max_num_frames
  bool merges = true;             ///< downsample_mode 16x
  std::int64_t rounds = 1;        ///< merger_times
};

/// Features of a piece: windows merged in the tower, squares behind it, as often as it says.
inline std::int64_t piece_tokens(const MiniCpm& r, Grid patches) {
  if (r.merges) patches = {patches.rows / 2, patches.cols / 2};
  for (std::int64_t i = 0; i < r.rounds; ++i) patches = {patches.rows / 2, patches.cols / 2};
  return patches.count();
}

/// transformers 5.17 image_processing_minicpmv4_6.py, _preprocess; processing_minicpmv4_6.py, replace_image_token.
/// Sides are whole squares of four by four patches, which two merges make one token of.
inline ImageLayout sliced_layout(const MiniCpm& r, const Slicing& by, ImageSize image) {
  return sliced_layout(r.scale, r.patch_size, r.patch_size * 4, by, image,
                       [&](Grid patches) { return piece_tokens(r, patches); });
}

/// With the picture's number, which is one digit of the first ten (processing_minicpmv4_6.py, _prepend_local_ids).
inline ImageLayout layout(const MiniCpm& r, ImageSize image) {
  ImageLayout l = sliced_layout(r, {r.max_tiles, r.tiling}, image);
  if (r.image_ids) l.text_overhead += 2 + 1;
  return l;
}
inline std::vector<ImageLayout> layouts(const MiniCpm& r, std::span<const ImageSize> sizes) {
  std::vector<ImageLayout> all;
  for (const ImageSize s : sizes) {
    ImageLayout l = layout(r, s);
    if (r.image_ids) l.text_overhead += digits(static_cast<std::int64_t>(all.size())) - 1;
    all.push_back(l);
  }
  return all;
}

/// video_processing_minicpmv4_6.py, sample_frames: one a second, or of a video of more seconds than frames so many of
/// its tenths of a second. A rate that is asked for is not read.
inline std::int64_t sampled_frames(const MiniCpm& r, const VideoSource& v) {
  if (v.take != 1.0) throw Error("plan.video.fps", "this processor takes one frame a second", "leave it out");
  const double duration = v.seconds();
  if (duration <= static_cast<double>(r.max_frames)) return to_int(std::ceil(duration));
  return std::min(to_int(duration / 0.1), r.max_frames);
}

/// Frames are laid out as pictures are, each for itself; the video's number stands before them.
inline ImageLayout video_layout(const MiniCpm& r, const VideoSource& v) {
  check(v);
  const std::int64_t n = v.take ? check_taken(sampled_frames(r, v), v) : v.frames;
  ImageLayout l = sliced_layout(r, r.video, v.size);
  l.sampled = l.frames = n;
  l.llm_tokens = checked_mul(l.llm_tokens, n);
  l.text_overhead = checked_mul(l.text_overhead, n) + (r.image_ids ? 2 + 1 : 0);
  return l;
}
inline OwnSampling own_sampling(const MiniCpm& r) { return {1.0, r.max_frames}; }

inline std::vector<MiniCpm> lower(const MiniCpm& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const MiniCpm& r) { return number_line("max_slice_nums", r.max_tiles); }

}  // namespace vlmest::image_processor
