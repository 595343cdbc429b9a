// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/anyres.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// LLaVA-NeXT-Video: LLaVA-NeXT's tiling of pictures; frames of a video are one tile each, whose patches are pooled.
struct LlavaNextVideo {
  std::int64_t image_size = 336;
  std::int64_t patch_size = 14;
  bool class_token = true;
  FeatureSelect select = FeatureSelect::drop_first;
  std::vector<ImageSize> pinpoints{{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  std::int64_t stride = 2;  ///< spatial_pool_stride
  Grid features{};          ///< of one tile where a block resamples them
};

/// transformers 5.17 processing_llava_next_video.py, _get_number_of_features; modeling_llava_next_video.py,
/// pack_image_features.
inline ImageLayout layout(const LlavaNextVideo& r, ImageSize image) {
  auto l = anyres(image, r.pinpoints, r.image_size, r.patch_size, r.class_token, r.select, r.features);
  l.llm_tokens = feature_grid(l).count() + l.kept.count() + l.kept.rows;
  return l;
}

/// video_processing_utils.py, sample_frames; processing_llava_next_video.py, replace_video_token, which takes a quarter
/// of the patches; modeling_llava_next_video.py, LlavaNextVideoPooler, whose last rows and columns are left out where
/// the stride does not divide them.
inline ImageLayout video_layout(const LlavaNextVideo& r, const VideoSource& v) {
  check(v);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + (r.class_token ? 1 : 0);
  l.sampled = l.tiles = evenly_taken(v);
  l.features = {l.patches.rows / r.stride, l.patches.cols / r.stride};
  if (l.features.count() != l.patches.count() / 4)
    throw Error("plan.video",
                "the processor writes " + std::to_string(l.patches.count() / 4) +
                    " tokens for a frame, of which pooling leaves " + std::to_string(l.features.count()),
                "a model whose tower has an even number of patches a side and whose spatial_pool_stride is 2 can run");
  l.llm_tokens = checked_mul(l.features.count(), l.tiles);
  return l;
}
inline OwnSampling own_sampling(const LlavaNextVideo&) { return {std::nullopt, max_frames}; }

inline std::vector<LlavaNextVideo> lower(const LlavaNextVideo& r, const ImageLayout& l) { return lower_canvas(r, l); }
inline std::string limit_line(const LlavaNextVideo& r) { return canvas_line(r.pinpoints); }

}  // namespace vlmest::image_processor
