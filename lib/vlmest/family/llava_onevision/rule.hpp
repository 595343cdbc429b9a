// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include <vlmest/nn/image_processor/anyres.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/llava.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// Every canvas of 1 .. side by 1 .. side tiles, row counts outermost: the order of the released processors.
inline std::vector<ImageSize> square_pinpoints(std::int64_t tile, std::int64_t side) {
  std::vector<ImageSize> p;
  for (std::int64_t i = 1; i <= side; ++i)
    for (std::int64_t j = 1; j <= side; ++j) p.push_back({i * tile, j * tile});
  return p;
}

/// LLaVA-OneVision: LLaVA-NeXT's tiling, with features beyond max_tiles tiles' worth shrunk bilinearly
/// (`vision_aspect_ratio` "anyres_max_9").
struct LlavaOnevision {
  std::int64_t image_size = 384;
  std::int64_t patch_size = 14;
  bool class_token = false;
  FeatureSelect select = FeatureSelect::full;
  std::int64_t max_tiles = 9;
  /// A prompt with several pictures: transformers 5.17 tiles none of them when the processor gets a list for each
  /// prompt, as apply_chat_template, pipelines and trainers give it, and each of them when it gets one flat list of all
  /// (image_processing_llava_onevision.py, preprocess: batch_num_images; processing_utils.py, apply_chat_template).
  bool tile_several = false;
  std::vector<ImageSize> pinpoints = square_pinpoints(384, 6);
  Grid features{};  ///< of one tile where a block resamples them
};

/// One tile and one newline feature: a picture among several in a prompt.
/// transformers 5.17 modeling_llava_onevision.py, pack_image_features, last branch.
constexpr ImageLayout untiled_layout(const LlavaOnevision& r, ImageSize image) {
  ImageLayout l = square_layout(r, image);
  l.llm_tokens = checked_add(l.llm_tokens, 1);
  return l;
}

/// transformers 5.17 processing_llava_onevision.py, _get_unpadded_features; modeling_llava_onevision.py,
/// pack_image_features.
inline ImageLayout layout(const LlavaOnevision& r, ImageSize image) {
  auto l = anyres(image, r.pinpoints, r.image_size, r.patch_size, r.class_token, r.select, r.features);
  check("anyres_max", r.max_tiles);
  const double ratio =
      std::sqrt(static_cast<double>(l.unpadded.count()) / static_cast<double>(r.max_tiles * feature_grid(l).count()));
  if (ratio > 1.1) {
    l.kept = {to_int(floor_div(static_cast<double>(l.unpadded.rows), ratio)),
              to_int(floor_div(static_cast<double>(l.unpadded.cols), ratio))};
    if (l.kept.count() == 0)
      throw Error("image size", "the features of this picture shrink to nothing", "use a less extreme aspect ratio");
  }
  l.llm_tokens = feature_grid(l).count() + l.kept.count() + l.kept.rows;
  return l;
}

/// Without tile_several, each picture of several is one tile.
inline std::vector<ImageLayout> layouts(const LlavaOnevision& r, std::span<const ImageSize> images) {
  const bool untiled = !r.tile_several && images.size() > 1;
  std::vector<ImageLayout> all;
  all.reserve(images.size());
  for (const ImageSize s : images) all.push_back(untiled ? untiled_layout(r, s) : layout(r, s));
  return all;
}

/// Frames are squares of a tile, whose features are pooled to half their rows and columns; one newline feature closes
/// the video. transformers 5.17 video_processing_utils.py, sample_frames; processing_llava_onevision.py,
/// replace_video_token; modeling_llava_onevision.py, apply_pooling.
inline ImageLayout video_layout(const LlavaOnevision& r, const VideoSource& v) {
  check(v);
  const std::int64_t taken = evenly_taken(v);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + (r.class_token ? 1 : 0);
  l.sampled = l.tiles = taken;
  l.features = {ceil_div(l.patches.rows, 2), ceil_div(l.patches.cols, 2)};
  l.llm_tokens = checked_mul(l.features.count(), taken) + 1;
  return l;
}
inline OwnSampling own_sampling(const LlavaOnevision&) { return {std::nullopt, max_frames}; }

inline std::vector<LlavaOnevision> lower(const LlavaOnevision& r, const ImageLayout& l) { return lower_canvas(r, l); }
inline std::string limit_line(const LlavaOnevision& r) { return canvas_line(r.pinpoints); }

}  // namespace vlmest::image_processor
