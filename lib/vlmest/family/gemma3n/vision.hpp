// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include <vlmest/family/gemma3n/vision_attention.hpp>
#include <vlmest/family/gemma3n/vision_blocks.hpp>
#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/graph/repeat.hpp>

/// timm's MobileNetV5Encoder as transformers loads it (timm 1.0 models/mobilenetv5.py, mobilenetv5_300m_enc;
/// transformers 5.17 models/timm_wrapper): a network of convolutions whose last two maps are joined into one of 16
/// x 16.
namespace vlmest {

/// Gemma3nVisionConfig: the architecture is the only one that there is.
struct Gemma3nVision {
  std::int64_t hidden = 2048;   ///< channels of a feature, as the embedder behind the tower takes them
  std::int64_t vocab = 128;     ///< entries of the table that the embedder has for tokens
  std::int64_t features = 256;  ///< vision_soft_tokens_per_image
};

namespace mobilenet_v5 {

inline constexpr std::int64_t image_size = 768, stem = 64, channels = 2048, side = 16;

using Stage = std::vector<MapBlockConfig>;
/// _gen_mobilenet_v5, the table of mobilenetv5_300m.
inline std::array<Stage, 4> stages() {
  using Kind = MapBlockConfig::Kind;
  const auto inverted = [](std::int64_t start, std::int64_t middle, std::int64_t stride, std::int64_t expansion,
                           std::int64_t out) {
    return MapBlockConfig{.out = out, .stride = stride, .expansion = expansion, .start = start, .middle = middle};
  };
  std::array<Stage, 4> r;
  for (const std::int64_t stride : {2, 1, 1})
    r[0].push_back({.kind = Kind::er, .out = 128, .stride = stride, .expansion = 4});
  r[1] = {inverted(3, 5, 2, 6, 256)};
  for (const std::int64_t start : {5, 3, 5, 3}) r[1].push_back(inverted(start, 0, 1, 4, 256));
  r[2] = {inverted(5, 5, 2, 6, 640)};
  for (int i = 0; i < 7; ++i) r[2].push_back(inverted(5, 0, 1, 4, 640));
  r[2].push_back(inverted(0, 0, 1, 1, 640));
  r[3] = {inverted(5, 5, 2, 6, 1280)};
  const auto attending = [&](Stage& stage, int times, const MapBlockConfig& attention) {
    for (int i = 0; i < times; ++i) {
      stage.push_back(attention);
      stage.push_back(inverted(0, 0, 1, 2, attention.out));
    }
  };
  attending(r[2], 14, {.kind = Kind::mqa, .out = 640, .heads = 12, .head_dim = 64, .key_stride = 2});
  attending(r[3], 19, {.kind = Kind::mqa, .out = 1280, .heads = 16, .head_dim = 96});
  return r;
}

}  // namespace mobilenet_v5

/// A block of a stage; `kind` is the place of the first one there that is like it, `first` its first parameter.
struct MapBlock {
  std::variant<EdgeResidual, InvertedResidual, MobileAttention> block;
  ScopeId scope = 0;
  int kind = 0;
  TensorId first = none;
};

struct MobileNetV5 {
  ScopeId scope = 0, timm_scope = 0, fusion_scope = 0;
  ConvNormAct stem;
  std::array<std::vector<MapBlock>, 4> stages;
  InvertedResidual fusion;
  MapNorm norm;
};

inline MapBlock make_map_block(Context& c, const mobilenet_v5::Stage& stage, std::int32_t index, std::int64_t in) {
  const MapBlockConfig& g = stage[static_cast<std::size_t>(index)];
  const InScope block(c.b, c.b.child("", index));
  MapBlock r{.scope = c.b.scope(), .first = static_cast<TensorId>(c.b.graph.tensors.size())};
  r.kind = static_cast<int>(std::find(stage.begin(), stage.end(), g) - stage.begin());
  switch (g.kind) {
    case MapBlockConfig::Kind::er: r.block = make_edge_residual(c, g, in); break;
    case MapBlockConfig::Kind::mqa: r.block = make_mobile_attention(c, g, in); break;
    case MapBlockConfig::Kind::uir: r.block = make_inverted_residual(c, g, in); break;
  }
  return r;
}

/// In the current scope: TimmWrapperModel.__init__, MobileNetV5Encoder.__init__.
inline MobileNetV5 make_tower(Context& c, const Gemma3nVision&) {
  MobileNetV5 t{.scope = c.b.scope()};
  Module m(c, "timm_model");
  t.timm_scope = m.scope;
  t.stem = make_conv_norm_act(c, "conv_stem",
                              {.in = 3, .out = mobilenet_v5::stem, .side = 3, .stride = 2, .bias = true}, true);
  std::int64_t in = mobilenet_v5::stem;
  const auto stages = mobilenet_v5::stages();
  for (std::size_t s = 0; s < stages.size(); ++s) {
    Module stage(c, "blocks", static_cast<std::int32_t>(s));
    for (std::size_t i = 0; i < stages[s].size(); ++i) {
      t.stages[s].push_back(make_map_block(c, stages[s], static_cast<std::int32_t>(i), in));
      in = stages[s][i].out;
    }
  }
  Module fusion(c, "msfa");
  t.fusion_scope = fusion.scope;
  {
    Module ffn(c, "ffn");
    t.fusion = make_inverted_residual(c, {.out = mobilenet_v5::channels, .expansion = 2, .middle = 0},
                                      stages[2].back().out + stages[3].back().out, false);
  }
  t.norm = make_map_norm(c, "norm", mobilenet_v5::channels, false);
  return t;
}

/// MobileNetV5MultiScaleFusionAdapter.forward of the last two stages' maps.
inline Value fuse(Context& c, const MobileNetV5& t, const std::array<Value, 2>& maps) {
  using namespace eager;
  InScope in(c.b, t.fusion_scope);
  const std::int64_t rows = maps[0].size(2), cols = maps[0].size(3);
  const Value resized = upsample_nearest2d(maps[1], rows, cols);
  const Value joined = cat(maps[0], resized, 1);
  Value x = forward(c, t.fusion, joined);
  x = avg_pool2d(x, rows / mobilenet_v5::side);
  x = forward(c, t.norm, x);
  return x;
}

/// MobileNetV5Encoder.forward_features: pixels[N, 3, 768, 768] -> [N, 2048, 16, 16].
inline Value forward(Context& c, const MobileNetV5& t, const Value& pixels) {
  InScope in(c.b, t.timm_scope);
  Value x = forward(c, t.stem, pixels);
  std::array<Value, 2> maps;
  for (std::size_t s = 0; s < t.stages.size(); ++s) {
    const Value given = x;  // of the stage's nn.Sequential
    Value y = given;
    LayerRepeater repeat(c.b, false);
    for (const MapBlock& b : t.stages[s]) {
      LayerRepeater::Layer place{b.kind, b.scope, b.first};
      place.input_read_elsewhere = &b == &t.stages[s].front();  // the last stages' maps are joined, too
      y = repeat(place, y, {}, [&](const Value& h) {
        return std::visit([&](const auto& block) { return forward(c, block, h); }, b.block);
      });
    }
    x = y;
    if (s >= 2) maps[s - 2] = x;
  }
  return fuse(c, t, maps);
}

}  // namespace vlmest
