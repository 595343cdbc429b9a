// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <vlmest/family/fast_vlm/convolutions.hpp>

/// FastViT's blocks whose branches inference merges (timm 1.0.29 models/fastvit.py).
namespace vlmest {

/// MobileOneBlock: a convolution, or the sum of a norm, one of 1 x 1 and others.
struct MobileOneConfig {
  MapConvConfig conv;
  bool squeeze = false;
  bool activates = true;
  bool scale = true;          ///< use_scale_branch
  std::int64_t branches = 1;  ///< num_conv_branches
};
struct MobileOneBlock {
  ScopeId scope = 0, act_scope = 0;
  std::optional<SqueezeExcite> squeeze;
  std::optional<MapConv> merged;
  std::optional<BatchNorm> identity;
  std::vector<ConvNorm> branches;
  std::optional<ConvNorm> scale;
  bool activates = true;
};
inline MobileOneBlock make_mobile_one(Context& c, const char* name, const MobileOneConfig& g, bool fused,
                                      std::int32_t index = none) {
  Module m(c, name, index);
  MobileOneBlock r{.scope = m.scope, .activates = g.activates};
  if (g.squeeze) r.squeeze = make_squeeze_excite(c, g.conv.out, divisible(static_cast<double>(g.conv.out) / 16, 1));
  if (fused) {
    r.merged = make_map_conv(c, "reparam_conv", g.conv, true);
  } else {
    if (g.conv.in == g.conv.out && g.conv.stride == 1) r.identity = make_batch_norm(c, "identity", g.conv.in);
    if (g.branches > 0) {
      Module list(c, "conv_kxk");
      for (std::int32_t i = 0; i < g.branches; ++i) r.branches.push_back(make_conv_norm(c, "", g.conv, i));
    }
    MapConvConfig scale = g.conv;
    scale.side = 1;
    if (g.conv.side > 1 && g.scale) r.scale = make_conv_norm(c, "conv_scale", scale);
  }
  if (g.activates) r.act_scope = c.b.child("act");
  return r;
}

/// The branches' sum: what is missing counts as the number 0, which is added all the same.
inline Value branches(Context& c, const MobileOneBlock& l, const Value& x) {
  using namespace eager;
  Value identity, scale, out;
  if (l.identity) identity = forward(c, *l.identity, x);
  if (l.scale) scale = forward(c, *l.scale, x);
  if (identity && scale)
    out = add(scale, identity);
  else if (identity || scale)
    out = add_scalar(identity ? identity : scale);
  for (const ConvNorm& b : l.branches) {
    Value y = forward(c, b, x);
    out = out ? add_(std::move(out), std::move(y)) : add_scalar(std::move(y));
  }
  const Value weighted = l.squeeze ? forward(c, *l.squeeze, out) : out;  // beside the sum, which is a variable
  return l.activates ? gelu(c, l.act_scope, weighted) : weighted;
}
inline Value forward(Context& c, const MobileOneBlock& l, const Value& x) {
  InScope in(c.b, l.scope);
  if (!l.merged) return branches(c, l, x);
  Value y = forward(c, *l.merged, x);
  if (l.squeeze) y = forward(c, *l.squeeze, y);
  return l.activates ? gelu(c, l.act_scope, y) : y;
}

/// ReparamLargeKernelConv: of each channel by itself.
struct LargeConv {
  ScopeId scope = 0, act_scope = 0;
  std::optional<MapConv> merged;
  std::optional<ConvNorm> large, small;
  std::optional<SqueezeExcite> squeeze;
  bool activates = false;
};
inline LargeConv make_large_conv(Context& c, const FastVitVision& g, std::int64_t in, const FastVitStageConfig& s) {
  Module m(c, "", 0);
  LargeConv r{.scope = m.scope, .activates = g.down_activates};
  MapConvConfig conv{.in = in, .out = s.dim, .side = g.down_side, .stride = g.down_stride, .depthwise = true};
  if (g.fused) {
    r.merged = make_map_conv(c, "reparam_conv", conv, true);
  } else {
    r.large = make_conv_norm(c, "large_conv", conv);
    conv.side = 3;
    r.small = make_conv_norm(c, "small_conv", conv);
  }
  if (s.squeeze) r.squeeze = make_squeeze_excite(c, s.dim, divisible(static_cast<double>(s.dim) / 4, 8));
  if (g.down_activates) r.act_scope = c.b.child("act");
  return r;
}
inline Value forward(Context& c, const LargeConv& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.scope);
  Value out;
  if (l.merged) {
    out = forward(c, *l.merged, x);
  } else {
    out = forward(c, *l.large, x);
    out = add(out, forward(c, *l.small, x));
  }
  if (l.squeeze) out = forward(c, *l.squeeze, out);
  if (l.activates) out = gelu(c, l.act_scope, out);
  return out;
}

/// PatchEmbed: it halves the map, then mixes channels.
struct FastVitDownsample {
  ScopeId scope = 0, list_scope = 0;
  LargeConv filter;
  MobileOneBlock mixer;
};
inline FastVitDownsample make_downsample(Context& c, const FastVitVision& g, std::int64_t in,
                                         const FastVitStageConfig& s) {
  Module m(c, "downsample");
  FastVitDownsample r{.scope = m.scope};
  Module list(c, "proj");
  r.list_scope = list.scope;
  r.filter = make_large_conv(c, g, in, s);
  r.mixer = make_mobile_one(c, "", {.conv = {.in = s.dim, .out = s.dim}}, g.fused, 1);
  return r;
}
inline Value forward(Context& c, const FastVitDownsample& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = forward(c, l.filter, arg);
  x = forward(c, l.mixer, x);
  return x;
}

}  // namespace vlmest
