// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

/// FastViT as its arguments make it (timm 1.0.29 models/fastvit.py, class FastVit).
namespace vlmest {

/// A stage: what halves the map, positions out of neighbours, blocks that are all alike.
struct FastVitStageConfig {
  std::int64_t layers = 2;
  std::int64_t dim = 64;
  std::int64_t inner = 256;  ///< of each block's MLP
  bool downsample = true;
  bool squeeze = false;  ///< channels are weighted by their means where the map is halved
  bool attends = false;  ///< token_mixers: attention, not repmixer
  bool positions = false;
};

struct FastVitVision {
  std::vector<FastVitStageConfig> stages;
  std::int64_t out = 3072;      ///< channels of the result: those of the last stage times cls_ratio
  std::int64_t mixer_side = 3;  ///< of RepMixer's filters
  std::int64_t down_side = 7, down_stride = 2;
  bool down_activates = false;  ///< lkc_use_act
  bool stem_scale = true;       ///< stem_use_scale_branch
  bool layer_norm = false;      ///< in front of attention: LayerNorm2d, not BatchNorm2d
  bool fused = false;           ///< inference_mode: each block's branches are one convolution
  bool pools = true;            ///< do_pooling of the wrapper: means of the result, which nothing reads
};

/// Zeros at each border of a convolution (timm layers/padding.py, get_padding).
constexpr std::int64_t fastvit_padding(std::int64_t side, std::int64_t stride) { return (stride - 1 + side - 1) / 2; }

/// Pixels of the side of a place of the last map: strides of the stem and of the stages, whose sides are rounded up.
inline std::int64_t pixels_of_feature(const FastVitVision& g) {
  std::int64_t n = 4;
  for (const FastVitStageConfig& s : g.stages) n *= s.downsample ? g.down_stride : 1;
  return n;
}

}  // namespace vlmest
