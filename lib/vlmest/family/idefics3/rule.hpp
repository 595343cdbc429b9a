// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// Idefics3 and SmolVLM. The processor scales every picture to longest_edge (four tiles as released), small ones too,
/// and splits it, so that a thumbnail can cost 17 tiles; `never` is do_image_splitting=False.
struct Idefics3 {
  std::int64_t tile_size = 364;  ///< max_image_size.longest_edge: the tower's image_size
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;               ///< scale_factor of the pixel shuffle
  std::int64_t longest_edge = 4 * 364;  ///< size.longest_edge
  Tiling tiling = Tiling::automatic;
  std::int64_t extra_newline = 0;  ///< 1 where the tokenizer does not join two newlines into one token
  /// video_sampling of the released files; SmolVLM alone.
  VideoLimits video{.fps = 1, .max_frames = 64};
};

/// The size with its longer side (the width of a square) at `edge`, the other one cut to an integer, at least 1, and
/// made even on request. transformers 5.17 image_processing_idefics3.py, _resize_output_size_rescale_to_max_len and
/// _resize_output_size_scale_below_upper_bound.
constexpr ImageSize with_longest_edge(ImageSize s, std::int64_t edge, bool even) {
  const double aspect = static_cast<double>(s.width) / static_cast<double>(s.height);
  const auto e = static_cast<double>(edge);
  const bool wide = s.width >= s.height;
  auto other = to_int(wide ? e / aspect : e * aspect);
  if (even) other += other % 2;
  other = std::max<std::int64_t>(other, 1);
  return wide ? ImageSize{other, edge} : ImageSize{edge, other};
}

/// The canvas that is cut into tiles: resize, then resize_for_vision_encoder in the same file. (Its own estimator,
/// get_number_of_image_patches, skips the second one's change of the short side.)
constexpr ImageSize split_canvas(const Idefics3& r, ImageSize s) {
  constexpr std::int64_t limit = 4096;  // MAX_IMAGE_SIZE there
  s = with_longest_edge(s, r.longest_edge, true);
  if (std::max(s.height, s.width) > limit) s = with_longest_edge(s, limit, false);
  s = with_longest_edge(s, ceil_div(std::max(s.height, s.width), r.tile_size) * r.tile_size, false);
  return {ceil_div(s.height, r.tile_size) * r.tile_size, ceil_div(s.width, r.tile_size) * r.tile_size};
}

/// transformers 5.17 processing_idefics3.py, replace_image_token: a marker and a row-column label before each tile, a
/// newline after each row, and the global tile between two markers with its label.
constexpr ImageLayout layout(const Idefics3& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.patches = square_patches(r.tile_size, r.patch_size);
  check("longest_edge", r.longest_edge);
  l.tower_tokens = l.patches.count();
  l.resized = {r.tile_size, r.tile_size};
  l.text_overhead = 3;
  if (r.tiling != Tiling::never) {
    l.resized = split_canvas(r, image);
    l.tile_grid = {l.resized.height / r.tile_size, l.resized.width / r.tile_size};
    if (const auto n = check("tiles", l.tile_grid.count(), 1, max_tile_count); n > 1) {
      l.tiles = n + 1;
      l.text_overhead += 2 * n + l.tile_grid.rows + r.extra_newline;
    }
  }
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  return l;
}

/// Tokens of num2words(n) in English, a word or a sign each.
constexpr std::int64_t english_words(std::int64_t n) {
  std::int64_t tokens = 0;
  if (n >= 1000) {
    tokens += english_words(n / 1000) + 1;
    n %= 1000;
    if (n == 0) return tokens;
    ++tokens;  // "and", or a comma ahead of hundreds
  }
  if (n >= 100) {
    tokens += 2;
    n %= 100;
    if (n == 0) return tokens;
    ++tokens;  // "and"
  }
  return tokens + (n > 20 && n % 10 != 0 ? 3 : 1);  // "twenty-one"
}

/// video_processing_smolvlm.py, sample_frames: at most max_frames, without the first and the last second of a video
/// that is long enough.
inline std::vector<std::int64_t> smolvlm_frames(const Idefics3& r, const VideoSource& v) {
  const double duration = v.seconds(), take = *v.take;
  const auto wanted =
      std::max<std::int64_t>(std::min<std::int64_t>(std::llrint(take * duration), r.video.max_frames), 1);
  std::int64_t first = 0, last = v.frames - 1;
  if (duration - 2 > static_cast<double>(r.video.max_frames) * take) {
    first = std::max<std::int64_t>(0, to_int(v.fps));
    last = std::min(to_int(static_cast<double>(v.frames) - v.fps), v.frames - 1);
  }
  if (first >= last) first = 0, last = v.frames - 1;
  std::vector<std::int64_t> all;
  for (const double x : linspace(static_cast<double>(first), static_cast<double>(last), wanted))
    if (const auto i = to_int(std::floor(x)); all.empty() || all.back() != i) all.push_back(i);
  return all;
}

/// Each frame is one tile. transformers 5.17 processing_smolvlm.py, replace_video_token: a sentence about the video, a
/// line of its time ahead of each frame, two newlines behind the last one. SmolLM2's tokenizer has a token for each of
/// these words, digits and signs.
inline ImageLayout video_layout(const Idefics3& r, const VideoSource& v) {
  check(v);
  const std::vector<std::int64_t> frames = v.take ? smolvlm_frames(r, v) : all_frames(v.frames);
  ImageLayout l;
  l.patches = square_patches(r.tile_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.resized = {r.tile_size, r.tile_size};
  l.sampled = l.tiles = static_cast<std::int64_t>(frames.size());
  l.llm_tokens = checked_mul(merged(l.patches, r.merge).count(), l.tiles);
  const auto seconds = [&](std::int64_t i) { return static_cast<double>(i) / v.fps; };
  const std::int64_t length = to_int(v.take ? v.seconds() : seconds(frames.back()));
  // "You are provided the following series of twelve frames from a 0:00:12 [H:MM:SS] video." and a line's end, with
  // days ahead of the hours, "1 day, ".
  const std::int64_t days = length / 86400, hours = length / 3600 % 24;
  l.text_overhead = 7 + english_words(l.sampled) + 4 + (days > 0 ? digits(days) + 3 : 0) + digits(hours) + 6 + 7 + 3;
  // A line's end, "Frame from 00:12:", a label between two markers.
  for (const std::int64_t i : frames)
    l.text_overhead += 4 + std::max<std::int64_t>(digits(to_int(seconds(i)) / 60), 2) + 4 + 3;
  l.text_overhead += 2;
  return l;
}
inline OwnSampling own_sampling(const Idefics3& r) { return {r.video.fps, r.video.max_frames}; }

/// Rows were recorded with whole pictures too.
inline std::optional<Idefics3> otherwise(const Idefics3& r) {
  Idefics3 whole = r;
  whole.tiling = Tiling::never;
  return whole;
}

inline std::vector<Idefics3> lower(const Idefics3& r, const ImageLayout& l) {
  std::vector<Idefics3> all;
  for (std::int64_t n = std::max(l.tile_grid.rows, l.tile_grid.cols) - 1; n > 0; --n) {
    all.push_back(r);
    all.back().longest_edge = n * r.tile_size;
  }
  return all;
}
inline std::string limit_line(const Idefics3& r) { return edge_line(r.longest_edge); }

}  // namespace vlmest::image_processor
