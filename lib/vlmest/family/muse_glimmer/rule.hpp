// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/rounding.hpp>
#include <vlmest/nn/image_processor/smart_resize.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// Muse Glimmer: a picture or frame becomes the grid of merged patches nearest to its aspect ratio, of no more than so
/// many. Defaults: MuseGlimmerImageProcessor, MuseGlimmerVideoProcessor.
struct MuseGlimmer {
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;
  std::int64_t max_image_tokens = 4096;
  std::int64_t temporal_patch_size = 2;
  std::int64_t max_frame_tokens = 144;  ///< max_video_frame_tokens
  std::int64_t num_frames = 96;         ///< the most that are sampled
  double fps = 2;
};

/// CPython's hash of a pair of integers, each of which is its own hash (Objects/tupleobject.c, tuplehash: the rounds of
/// xxHash).
constexpr std::uint64_t pair_hash(Grid g) {
  constexpr std::uint64_t p1 = 11400714785074694791U, p2 = 14029467366897019727U, p5 = 2870177450012600261U;
  std::uint64_t sum = p5;
  for (const std::int64_t n : {g.rows, g.cols}) {
    sum += static_cast<std::uint64_t>(n) * p2;
    sum = (sum << 31 | sum >> 33) * p1;
  }
  return sum + (2 ^ (p5 ^ 3527539U));
}

/// list(set(grids)) of up to four grids: the order of a table of eight places (Objects/setobject.c, set_add_entry).
/// Where two grids are equally near to a picture, as they are to every square, it decides which one is taken.
constexpr std::vector<Grid> set_order(const std::array<Grid, 4>& grids) {
  std::array<std::optional<Grid>, 8> table{};
  for (const Grid g : grids) {
    std::uint64_t perturb = pair_hash(g), at = perturb & 7;
    while (table[at] && *table[at] != g) {
      perturb >>= 5;
      at = (at * 5 + 1 + perturb) & 7;
    }
    table[at] = g;
  }
  std::vector<Grid> r;
  for (const auto& g : table)
    if (g) r.push_back(*g);
  return r;
}

/// transformers 5.17 image_processing_muse_glimmer.py, smart_resize: rows and columns of cells of `cell` pixels.
inline Grid nearest_grid(ImageSize image, std::int64_t cell, std::int64_t most) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  double rows = height / static_cast<double>(cell), cols = width / static_cast<double>(cell);
  const double ratio = cols / rows;
  if (rows * cols > static_cast<double>(most)) {
    rows = std::pow(static_cast<double>(most) / ratio, 0.5);
    cols = rows * ratio;
  }
  const std::array<std::int64_t, 2> r{to_int(std::floor(rows)), to_int(std::ceil(rows))},
      k{to_int(std::floor(cols)), to_int(std::ceil(cols))};
  const std::vector<Grid> all = set_order({Grid{r[0], k[0]}, {r[0], k[1]}, {r[1], k[0]}, {r[1], k[1]}});
  const auto distance = [&](Grid g) {
    return std::abs(static_cast<double>(g.rows) / static_cast<double>(g.cols) - height / width);
  };
  std::optional<Grid> best;
  for (const Grid g : all)
    if (g.rows >= 1 && g.cols >= 1 && g.count() <= most && (!best || distance(g) < distance(*best))) best = g;
  const auto whole = [](double n) { return std::max<std::int64_t>(std::llrint(n), 1); };
  return best.value_or(Grid{whole(rows), whole(cols)});
}

inline ImageSize muse_size(const MuseGlimmer& r, ImageSize image, const char* limit, std::int64_t most) {
  check(image);
  const std::int64_t cell = check("patch_size", r.patch_size) * check("merge_size", r.merge, 1, 64);
  const Grid g = nearest_grid(image, cell, check(limit, most, 1, std::int64_t{1} << 40));
  return {g.rows * cell, g.cols * cell};
}

/// processing_muse_glimmer.py, replace_image_token: a token at either end.
inline ImageLayout layout(const MuseGlimmer& r, ImageSize image) {
  ImageLayout l = merged_patches(muse_size(r, image, "max_image_tokens", r.max_image_tokens), r.patch_size, r.merge);
  l.text_overhead = 2;
  return l;
}

/// video_processing_muse_glimmer.py, sample_frames: whole temporal patches at the rate that is asked for, evenly
/// spread.
inline std::vector<std::int64_t> muse_frames(const MuseGlimmer& r, const VideoSource& v) {
  if (!v.take) return all_frames(v.frames);
  const std::int64_t patch = check("temporal_patch_size", r.temporal_patch_size, 1, 64);
  std::int64_t n = to_int(static_cast<double>(v.frames) * *v.take / v.fps);
  n = std::min({n, check("num_frames", r.num_frames), v.frames});
  n = std::min(std::max(patch, n / patch * patch), v.frames);
  std::vector<std::int64_t> all;
  for (const double x : linspace(0, static_cast<double>(v.frames - 1), check_taken(n, v))) all.push_back(to_int(x));
  return all;
}

/// processing_muse_glimmer.py, replace_video_token: "Time: 12.3s" ahead of each temporal patch, a token behind it, one
/// ahead of all. The text is cut as Llama 4's pre-tokenizer cuts it (word, colon, space, digits by threes, point,
/// digit, "s"), whose vocabulary has this model's size; what its own tokenizer makes of it was not compared.
inline ImageLayout video_layout(const MuseGlimmer& r, const VideoSource& v) {
  check(v);
  const std::vector<std::int64_t> frames = muse_frames(r, v);
  const std::int64_t patch = check("temporal_patch_size", r.temporal_patch_size, 1, 64);
  ImageLayout l = packed_video(muse_size(r, v.size, "max_video_frame_tokens", r.max_frame_tokens),
                               static_cast<std::int64_t>(frames.size()), r.patch_size, r.merge, patch);
  l.timestamps = true;
  l.text_overhead = 1;
  for (std::size_t i = 0; i < frames.size(); i += static_cast<std::size_t>(patch))
    l.text_overhead += 6 + ceil_div(whole_digits(static_cast<double>(frames[i]) / v.fps), 3) + 1;
  return l;
}
inline OwnSampling own_sampling(const MuseGlimmer& r) { return {r.fps, r.num_frames}; }

inline std::vector<MuseGlimmer> lower(const MuseGlimmer& r, const ImageLayout& now) {
  std::vector<MuseGlimmer> all;
  for (std::int64_t k = lever_steps - 1; k > 0; --k) {
    MuseGlimmer less = r;
    less.max_image_tokens = std::max<std::int64_t>(now.llm_tokens * k / lever_steps, 1);
    all.push_back(less);
  }
  return all;
}
inline std::string limit_line(const MuseGlimmer& r) { return number_line("max_image_tokens", r.max_image_tokens); }

}  // namespace vlmest::image_processor
