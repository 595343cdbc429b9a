// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include <vlmest/family/fast_vlm/mixers.hpp>
#include <vlmest/graph/repeat.hpp>
#include <vlmest/nn/sequence.hpp>

/// FastViT as transformers wraps it (timm 1.0.29 models/fastvit.py, FastVit; transformers 5.17 models/timm_wrapper,
/// TimmWrapperModel).
namespace vlmest {

/// FastVitStage.
struct FastVitStage {
  ScopeId scope = 0, positions_scope = 0;
  std::optional<FastVitDownsample> downsample;
  std::optional<MapConv> positions;  ///< RepConditionalPosEnc's convolution
  bool merged = false;               ///< that has what it is added to in it
  std::vector<FastVitBlock> blocks;
};

struct FastVit {
  const FastVitVision* config = nullptr;
  ScopeId scope = 0, head_scope = 0;
  std::array<MobileOneBlock, 3> stem;
  std::vector<FastVitStage> stages;
  MobileOneBlock last;
};

inline FastVitStage make_fastvit_stage(Context& c, const FastVitVision& g, std::int64_t in, const FastVitStageConfig& s,
                                       std::int32_t index) {
  Module m(c, "", index);
  FastVitStage r{.scope = m.scope, .merged = g.fused};
  if (s.downsample) r.downsample = make_downsample(c, g, in, s);
  if (s.positions) {
    Module p(c, "pos_emb");
    r.positions_scope = p.scope;
    r.positions = make_map_conv(c, g.fused ? "reparam_conv" : "pos_enc",
                                {.in = s.dim, .out = s.dim, .side = 7, .depthwise = true}, true);
  }
  Module blocks(c, "blocks");
  r.blocks = make_layers(s.layers, [&](std::int32_t i) { return make_fastvit_block(c, g, s, i); });
  return r;
}

/// In the current scope: TimmWrapperModel.__init__, FastVit.__init__.
inline FastVit make_tower(Context& c, const FastVitVision& g) {
  Module m(c, "timm_model");
  FastVit t{.config = &g, .scope = m.scope};
  std::int64_t dim = g.stages.front().dim;
  {
    Module stem(c, "stem");
    MobileOneConfig conv{.conv = {.in = 3, .out = dim, .side = 3, .stride = 2}, .scale = g.stem_scale};
    t.stem[0] = make_mobile_one(c, "", conv, g.fused, 0);
    conv.conv = {.in = dim, .out = dim, .side = 3, .stride = 2, .depthwise = true};
    t.stem[1] = make_mobile_one(c, "", conv, g.fused, 1);
    conv.conv = {.in = dim, .out = dim};
    t.stem[2] = make_mobile_one(c, "", conv, g.fused, 2);
  }
  {
    Module stages(c, "stages");
    for (const FastVitStageConfig& s : g.stages) {
      t.stages.push_back(make_fastvit_stage(c, g, dim, s, static_cast<std::int32_t>(t.stages.size())));
      dim = s.dim;
    }
  }
  t.last = make_mobile_one(c, "final_conv",
                           {.conv = {.in = dim, .out = g.out, .side = 3, .depthwise = true}, .squeeze = true}, g.fused);
  {
    Module head(c, "head");
    Module pool(c, "global_pool");
    t.head_scope = c.b.child("pool");
  }
  return t;
}

inline Value forward(Context& c, const FastVitStage& s, const Value& arg) {
  using namespace eager;
  InScope in(c.b, s.scope);
  Value x = arg;
  if (s.downsample) x = forward(c, *s.downsample, x);
  if (s.positions) {
    InScope p(c.b, s.positions_scope);
    const Value near = forward(c, *s.positions, x);
    x = s.merged ? near : add(near, x);
  }
  Value y = x;  // of nn.Sequential
  LayerRepeater repeat(c.b, false);
  for (const FastVitBlock& b : s.blocks) {
    LayerRepeater::Layer place{0, b.scope, b.first};
    y = repeat(place, y, {}, [&](const Value& h) { return forward(c, b, h); });
  }
  return y;
}

/// What TimmWrapperModel.forward gives: pixels[N, 3, H, W] -> the last map, and the means of it where it pools.
struct FastVitOutput {
  Value map, pooled;
};
inline FastVitOutput forward(Context& c, const FastVit& t, const Value& pixels) {
  using namespace eager;
  FastVitOutput r;
  InScope in(c.b, t.scope);
  {
    Value x = pixels;
    for (const MobileOneBlock& b : t.stem) x = forward(c, b, x);
    for (const FastVitStage& s : t.stages) x = forward(c, s, x);
    r.map = forward(c, t.last, x);
  }
  if (!t.config->pools) return r;
  InScope head(c.b, t.head_scope);
  r.pooled = mean_of_maps(r.map);
  return r;
}

/// Pictures are of one size.
inline Shape pixel_shape(const FastVitVision&, std::span<const ImageLayout> images) {
  const ImageSize size = images.front().resized;
  return {static_cast<std::int64_t>(images.size()), 3, size.height, size.width};
}

}  // namespace vlmest
