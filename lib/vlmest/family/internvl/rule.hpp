// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>
#include <vlmest/nn/image_processor/video.hpp>

namespace vlmest::image_processor {

/// InternVL 2.5 and 3: tiles of nearest aspect ratio and a thumbnail, pixel shuffle, a start and an end token.
struct InternVl {
  std::int64_t image_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t merge = 2;  ///< 1 / downsample_ratio
  std::int64_t min_tiles = 1;
  std::int64_t max_tiles = 12;
  Tiling tiling = Tiling::automatic;
  bool thumbnail = true;  ///< use_thumbnail of the checkpoints' own code; transformers' port always adds one
};

/// transformers 5.17 processing_internvl.py, replace_image_token, and modeling_internvl_chat.py of the checkpoints,
/// chat(); the tower adds a class token that is dropped again.
inline ImageLayout layout(const InternVl& r, ImageSize image) {
  auto l = tiled_canvas(image, r.image_size, r.patch_size, r.min_tiles, r.max_tiles, r.tiling);
  if (!r.thumbnail) l.tiles = l.tile_grid.count();
  l.tower_tokens = l.patches.count() + 1;
  l.llm_tokens = l.tiles * merged(l.patches, r.merge).count();
  l.text_overhead = 2;
  return l;
}

/// Each frame is one tile. transformers 5.17 video_processing_internvl.py, sample_frames, and processing_internvl.py,
/// replace_video_token: lines of "Frame12: ", of a start and an end token around the placeholders. Qwen's tokenizers
/// have a token for the word, each digit, the colon, the blank and the line's end.
inline ImageLayout video_layout(const InternVl& r, const VideoSource& v) {
  check(v);
  const std::int64_t taken =
      v.take ? check_taken(to_int(static_cast<double>(v.frames) / v.fps * *v.take), v) : v.frames;
  ImageLayout l = layout(r, ImageSize{r.image_size, r.image_size});
  l.sampled = l.tiles = taken;
  l.llm_tokens = checked_mul(merged(l.patches, r.merge).count(), taken);
  l.text_overhead = taken - 1;
  for (std::int64_t i = 1; i <= taken; ++i) l.text_overhead += 3 + digits(i) + 2;
  return l;
}
inline OwnSampling own_sampling(const InternVl&) { return {std::nullopt, max_frames}; }

inline std::vector<InternVl> lower(const InternVl& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const InternVl& r) { return number_line("max_patches", r.max_tiles); }

}  // namespace vlmest::image_processor
