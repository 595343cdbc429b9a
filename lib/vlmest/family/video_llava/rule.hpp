// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <vlmest/nn/image_processor/image.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// Video-LLaVA: every picture and every frame of a video is one square; of frames the class token stays.
struct VideoLlava {
  std::int64_t image_size = 224;
  std::int64_t patch_size = 14;
  FeatureSelect select = FeatureSelect::drop_first;  ///< of pictures
};

/// transformers 5.17 processing_video_llava.py, replace_image_token.
inline ImageLayout layout(const VideoLlava& r, ImageSize image) {
  check(image);
  ImageLayout l;
  l.resized = {r.image_size, r.image_size};
  l.patches = square_patches(r.image_size, r.patch_size);
  l.tower_tokens = l.patches.count() + 1;
  l.llm_tokens = l.tower_tokens - (r.select == FeatureSelect::drop_first ? 1 : 0);
  return l;
}

/// video_processing_utils.py, sample_frames; processing_video_llava.py, replace_video_token.
inline ImageLayout video_layout(const VideoLlava& r, const VideoSource& v) {
  check(v);
  ImageLayout l = layout(r, v.size);
  l.sampled = l.tiles = evenly_taken(v);
  l.llm_tokens = checked_mul(l.tower_tokens, l.tiles);
  return l;
}
inline OwnSampling own_sampling(const VideoLlava&) { return {std::nullopt, max_frames}; }

inline std::vector<VideoLlava> lower(const VideoLlava&, const ImageLayout&) { return {}; }
inline std::string limit_line(const VideoLlava&) { return ""; }

}  // namespace vlmest::image_processor
