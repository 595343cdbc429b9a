// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include <vlmest/nn/family/feature_calls.hpp>
#include <vlmest/nn/family/vision_chunks.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

/// Families whose processor hands over the whole view of each picture (pixel_values), the tiles of all pictures in one
/// row beside them (pixel_values_local), and how many of these each picture has (num_local_patches): DeepSeek-OCR-2,
/// Step-3.7.
namespace vlmest {

struct LocalViewInputs {
  TextInputs text;
  Value pixels;  ///< whole views, one row for each image; none without images
  Value counts;  ///< num_local_patches: int64[images], which the host reads; none in a part of a batch
  Value local;   ///< tiles of all images; none where no image has any
};

inline std::vector<std::int64_t> local_counts(const Sequences& s) {
  std::vector<std::int64_t> n;
  for (const ImageLayout& i : s.images) n.push_back(image_processor::local_tiles(i));
  return n;
}

inline LocalViewInputs make_local_view_inputs(Context& c, const Sequences& s, std::int64_t channels,
                                              std::int64_t patch_size) {
  LocalViewInputs in;
  if (!s.images.empty()) {
    const auto images = static_cast<std::int64_t>(s.images.size());
    const auto pixels = [&](const char* name, std::int64_t rows, std::int64_t side) {
      return c.b.existing(name, Role::input, c.dtype(), {rows, channels, side, side});
    };
    in.pixels = pixels("pixel_values", images, s.images.front().patches.rows * patch_size);
    in.counts = c.b.existing("num_local_patches", Role::input, DType::int64, {images});
    std::int64_t tiles = 0, side = 0;
    for (const ImageLayout& i : s.images) {
      if (image_processor::local_tiles(i) == 0) continue;
      tiles = checked_add(tiles, image_processor::local_tiles(i));
      side = image_processor::local_side(i);
    }
    if (tiles > 0) in.local = pixels("pixel_values_local", tiles, side);
  }
  in.text = make_text_inputs(c, s.batch, s.seq, s.seq);
  return in;
}

/// Slices of the images, their tiles with them.
inline std::vector<VisionChunk<LocalViewInputs>> vision_chunks(Context& c, const LocalViewInputs& in,
                                                               const Sequences& s) {
  eager::to_host(in.counts);
  auto chunks = cut_rows(c, in, s, s.images);
  std::int64_t at = 0;
  for (auto& chunk : chunks) {
    const std::vector<std::int64_t> n = local_counts(chunk.sequences);
    const std::int64_t tiles = std::accumulate(n.begin(), n.end(), std::int64_t{0});
    chunk.inputs.counts.reset();
    chunk.inputs.local = tiles > 0 ? eager::slice(in.local, 0, at, at + tiles) : Value();
    at += tiles;
  }
  return chunks;
}

namespace feature_calls {

/// get_image_features(pixel_values, pixel_values_local, num_local_patches), by position; a list for each image.
inline std::string local_views_line(const std::string&, std::int64_t n) {
  const std::string step = std::to_string(n), from = "[i:i+" + step + "]";
  return image_features("p, l, n", "[y for n in [n.tolist()] for i in range(0, len(p), " + step + ") for y in f(p" +
                                       from + ", l[sum(n[:i]):sum(n[:i+" + step + "])] if sum(n" + from +
                                       ") else None, n" + from + ", **k).pooler_output]");
}
inline constexpr FeatureCall local_views{local_views_line};

}  // namespace feature_calls
}  // namespace vlmest
