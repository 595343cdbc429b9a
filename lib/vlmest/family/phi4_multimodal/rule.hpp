// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <vlmest/family/phi4_multimodal/audio_config.hpp>
#include <vlmest/nn/audio/layout.hpp>
#include <vlmest/nn/image_processor/levers.hpp>
#include <vlmest/nn/image_processor/tiled_canvas.hpp>

namespace vlmest::image_processor {

/// Phi-4-multimodal: as many square crops as cover the picture, up to a number of them, and the whole picture as one
/// more (transformers 5.17 image_processing_phi4_multimodal.py).
struct Phi4Multimodal {
  std::int64_t crop_size = 448;
  std::int64_t patch_size = 14;
  std::int64_t max_tiles = 36;  ///< dynamic_hd
};

/// Patches on a side of a crop, for which the processor counts 16 x 16 tokens whatever the crop's sides are.
inline constexpr std::int64_t phi4_patches = 32;

/// dynamic_preprocess: crops in rows and columns.
inline Grid phi4_crops(const Phi4Multimodal& r, ImageSize image) {
  const auto along = [&](std::int64_t n) { return (n + r.crop_size - 1) / r.crop_size; };
  const Grid cover{along(image.height), along(image.width)};
  return cover.count() > r.max_tiles ? nearest_aspect_grid(image, r.crop_size, 1, r.max_tiles) : cover;
}

/// The picture is scaled to fill one side of the crops' canvas; patches that are padding alone are left out. Tokens are
/// those of the whole picture and of what is left of the crops, two by two patches each, with one behind each row and
/// one between the two. Throws Error where a side is left with less than ten pixels, as the processor does.
inline ImageLayout layout(const Phi4Multimodal& r, ImageSize image) {
  check(image);
  check("dynamic_hd", r.max_tiles, 1, max_tile_count);
  ImageLayout l;
  l.patches = square_patches(r.crop_size, r.patch_size);
  l.tower_tokens = l.patches.count();
  l.tile_grid = phi4_crops(r, image);
  l.tiles = l.tile_grid.count() + 1;
  l.resized = {l.tile_grid.rows * r.crop_size, l.tile_grid.cols * r.crop_size};
  const double wide = static_cast<double>(l.resized.width) / static_cast<double>(image.width),
               high = static_cast<double>(l.resized.height) / static_cast<double>(image.height);
  ImageSize filled = l.resized;
  if (wide < high)
    filled.height = static_cast<std::int64_t>(static_cast<double>(image.height) * wide);
  else
    filled.width = static_cast<std::int64_t>(static_cast<double>(image.width) * high);
  if (std::min(filled.height, filled.width) < 10)
    throw Error("image size",
                std::to_string(image.height) + "x" + std::to_string(image.width) +
                    " has an aspect ratio that the processor refuses",
                "give a picture that is less narrow");
  const auto seen = [&](std::int64_t canvas, std::int64_t used) {
    return canvas / r.patch_size - (canvas - used) / r.patch_size;
  };
  l.unpadded = {seen(l.resized.height, filled.height), seen(l.resized.width, filled.width)};
  l.kept = {(l.unpadded.rows + 1) / 2, (l.unpadded.cols + 1) / 2};
  l.real_patches = l.patches.count() + l.unpadded.count();
  constexpr std::int64_t whole = phi4_patches / 2;
  l.llm_tokens = whole * (whole + 1) + 1 + l.kept.rows * (l.kept.cols + 1);
  return l;
}

inline std::vector<Phi4Multimodal> lower(const Phi4Multimodal& r, const ImageLayout& l) { return lower_tiles(r, l); }
inline std::string limit_line(const Phi4Multimodal& r) { return number_line("dynamic_hd", r.max_tiles); }

}  // namespace vlmest::image_processor

namespace vlmest::audio {

/// Phi-4-multimodal's processor (transformers 5.17 feature_extraction_phi4_multimodal.py): frames that lie within the
/// clip alone, neither filled up nor cut; every audio_compression_rate of them are one token.
struct Phi4Clips {
  MelSettings mel{.extractor = FeatureExtractor::phi4_multimodal, .mels = 80, .compression = 8};
  Phi4Audio tower;
};

inline AudioLayout audio_layout(const Phi4Clips& r, const AudioSource& a) {
  AudioLayout l{.samples = samples(a, r.mel.sampling_rate), .mels = r.mel.mels};
  if (l.samples < r.mel.n_fft)
    throw Error("plan.audio.seconds",
                std::to_string(l.samples) +
                    " samples are fewer than a frame of the feature extractor has, which "
                    "refuses them",
                "give a longer clip");
  l.frames = l.row_frames = (l.samples - r.mel.n_fft) / r.mel.hop_length + 1;
  l.tower_tokens = r.tower.states(l.frames);
  l.llm_tokens = (l.frames + r.mel.compression - 1) / r.mel.compression;
  if (l.llm_tokens > l.tower_tokens)
    throw Error("plan.audio.seconds",
                std::to_string(l.llm_tokens) + " tokens of a clip, for which the encoder leaves " +
                    std::to_string(l.tower_tokens) + " features",
                "set audio_config.time_reduction to " + std::to_string(r.mel.compression));
  return l;
}

}  // namespace vlmest::audio
