// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Moondream 2's sizes, as the code that comes with its checkpoints has them by default (vikhyat/moondream
/// moondream/torch/config.py, MoondreamConfig).
namespace vlmest {

/// TextConfig. Heads have 64 channels, of which rope.py turns 32; masks are 2048 positions long.
struct MoondreamText {
  std::int64_t vocab = 51200;
  std::int64_t hidden = 2048;
  std::int64_t intermediate = 8192;
  std::int64_t layers = 24;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 32;

  static constexpr std::int64_t context = 2048;  ///< max_context: positions of every cache
  static constexpr std::int64_t head_dim = 64;
  static constexpr std::int64_t rotated = 32;  ///< channels of a head
};

/// VisionConfig. Crops have 27 by 27 patches, which its functions count on.
struct MoondreamVision {
  std::int64_t hidden = 1152;
  std::int64_t intermediate = 4304;
  std::int64_t heads = 16;
  std::int64_t inner = 8192;  ///< of the projection
  std::int64_t max_crops = 12;
  std::int64_t margin = 4;  ///< patches of a crop that its neighbour has too

  static constexpr std::int64_t side = 27;  ///< patches of a crop, and layers: enc_n_layers stands for both
  static constexpr std::int64_t patch_size = 14;
  static constexpr std::int64_t channels = 3;
  static constexpr std::int64_t patches = side * side;
};

/// RegionConfig: what makes coordinates and sizes of boxes of hidden states, and hidden states of them.
struct MoondreamRegion {
  std::int64_t coordinate_features = 256;
  std::int64_t coordinate_bins = 1024;
  std::int64_t size_features = 512;
  std::int64_t size_bins = 2048;
  std::int64_t inner = 8192;
};

}  // namespace vlmest
