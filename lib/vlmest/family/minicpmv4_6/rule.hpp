// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// How a picture or a frame is cut: by slice_mode and max_slice_nums.
struct Slicing {
  std::int64_t max_tiles = 9;
  Tiling tiling = Tiling::automatic;
};

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

/// Python's max(round(length / divisor) * divisor, divisor).
inline std::int64_t ensure_divide(double length, std::int64_t divisor) {
  const double n = length / static_cast<double>(divisor);
  return std::max<std::int64_t>(to_int(std::nearbyint(n)) * divisor, divisor);
}

/// find_best_resize: sides in whole squares of four by four patches, which two merges make one token of.
inline ImageSize best_resize(const MiniCpm& r, double height, double width, bool upscale) {
  const auto scale = static_cast<double>(r.scale);
  if (height * width > scale * scale || upscale) {
    const double aspect = width / height;
    height = std::trunc(scale / std::sqrt(aspect));
    width = std::trunc(height * aspect);
  }
  const std::int64_t side = r.patch_size * 4;
  return {ensure_divide(height, side), ensure_divide(width, side)};
}

/// get_sliced_grid: rows and columns of the slices, or {0, 0}.
inline Grid sliced_grid(const MiniCpm& r, const Slicing& by, ImageSize image) {
  if (by.tiling == Tiling::never) return {};
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const double log_ratio = std::log(w / h);
  const double ratio = w * h / static_cast<double>(r.scale * r.scale);
  const std::int64_t multiple = std::min(to_int(std::ceil(ratio)), by.max_tiles);
  if (multiple <= 1) return {};
  Grid best{1, 1};
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t n = multiple - 1; n <= multiple + 1; ++n) {
    if (n == 1 || n > by.max_tiles) continue;
    for (std::int64_t cols = 1; cols <= n; ++cols) {
      if (n % cols != 0) continue;
      const std::int64_t rows = n / cols;
      const double error = std::abs(log_ratio - std::log(static_cast<double>(cols) / static_cast<double>(rows)));
      if (error >= least) continue;
      best = {rows, cols};
      least = error;
    }
  }
  return best;
}

/// Features of a piece: windows merged in the tower, squares behind it, as often as it says.
inline std::int64_t piece_tokens(const MiniCpm& r, Grid patches) {
  if (r.merges) patches = {patches.rows / 2, patches.cols / 2};
  for (std::int64_t i = 0; i < r.rounds; ++i) patches = {patches.rows / 2, patches.cols / 2};
  return patches.count();
}

/// transformers 5.17 image_processing_minicpmv4_6.py, _preprocess; processing_minicpmv4_6.py, replace_image_token: the
/// whole picture between a start and an end token, then each slice between two of its own, rows of slices on lines of
/// their own.
inline ImageLayout sliced_layout(const MiniCpm& r, const Slicing& by, ImageSize image) {
  check(image);
  check("patch_size", r.patch_size);
  check("scale_resolution", r.scale);
  check("max_slice_nums", by.max_tiles, 1, max_tile_count);
  const auto patches = [&](ImageSize s) -> Grid { return {s.height / r.patch_size, s.width / r.patch_size}; };
  const auto h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const Grid grid = sliced_grid(r, by, image);
  ImageLayout l;
  l.resized = best_resize(r, h, w, grid.count() == 0);
  l.patches = patches(l.resized);
  l.tower_tokens = l.patches.count();
  l.llm_tokens = piece_tokens(r, l.patches);
  l.text_overhead = 2;
  if (grid.count() == 0) return l;
  const auto rows = static_cast<double>(grid.rows), cols = static_cast<double>(grid.cols);
  const auto refined_w = static_cast<double>(ensure_divide(w, grid.cols));
  const auto refined_h = static_cast<double>(ensure_divide(h, grid.rows));
  l.tile_grid = grid;
  l.tiles = 1 + grid.count();
  l.slices = patches(best_resize(r, refined_h / rows, refined_w / cols, true));
  l.llm_tokens += grid.count() * piece_tokens(r, l.slices);
  l.text_overhead += 2 * grid.count() + grid.rows - 1;
  return l;
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
