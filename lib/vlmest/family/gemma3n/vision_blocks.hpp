// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>

#include <vlmest/graph/eager/rows_convolution.hpp>
#include <vlmest/nn/context.hpp>

/// What timm's MobileNetV5 is made of (timm 1.0 models/_efficientnet_blocks.py, layers/conv_bn_act.py, layers/
/// norm_act.py, layers/conv2d_same.py): convolutions with norms over the channels of each position.
namespace vlmest {

/// torch.nn.Conv2d of square filters, or timm's Conv2dSame, which pads its argument by a copy so that strides leave
/// ceil(side / stride).
struct SameConv {
  ScopeId scope = 0;
  TensorId weight = none, bias = none;
  std::int64_t side = 1, stride = 1;
};
struct SameConvConfig {
  std::int64_t in = 0, out = 0;
  std::int64_t side = 1, stride = 1;
  bool depthwise = false, bias = false;
};
inline SameConv make_same_conv(Context& c, const char* name, const SameConvConfig& g) {
  Module m(c, name);
  SameConv r{.scope = m.scope, .side = g.side, .stride = g.stride};
  r.weight = parameter(c, "weight", {g.out, g.depthwise ? 1 : g.in, g.side, g.side});
  if (g.bias) r.bias = parameter(c, "bias", {g.out});
  return r;
}

/// timm layers/padding.py, is_static_pad and pad_same: strides make it a copy, whatever it adds.
inline Value forward(Context& c, const SameConv& l, const Value& x) {
  using namespace eager;
  InScope in(c.b, l.scope);
  const Value weight(c.b, l.weight), bias = l.bias == none ? Value() : Value(c.b, l.bias);
  if (l.stride == 1) return rows_conv2d(x, weight, bias, {}, l.side / 2);
  const auto lacking = [&](std::int64_t n) {
    return std::max<std::int64_t>(((n + l.stride - 1) / l.stride - 1) * l.stride + l.side - n, 0);
  };
  const std::int64_t rows = lacking(x.size(2)), cols = lacking(x.size(3));
  const Value padded = pad(x, {{-1, cols / 2, cols - cols / 2}, {-2, rows / 2, rows - rows / 2}});
  return rows_conv2d(padded, weight, bias, {l.stride, l.stride});
}

/// RmsNormAct2d, or RmsNorm2d, which has no modules within.
struct MapNorm {
  ScopeId scope = 0, activation_scope = 0;
  TensorId weight = none;
  bool activates = false;  ///< by GELU
};
inline MapNorm make_map_norm(Context& c, const char* name, std::int64_t channels, bool activates) {
  Module m(c, name);
  MapNorm r{.scope = m.scope, .activates = activates};
  r.weight = parameter(c, "weight", {channels});
  if (activates) r.activation_scope = c.b.child("act");
  return r;
}

/// layers/fast_norm.py, rms_norm2d: the argument stays the caller's while the norm's own variables are rebound.
inline Value forward(Context& c, const MapNorm& n, const Value& arg) {
  using namespace eager;
  InScope in(c.b, n.scope);
  Value x = arg;
  {
    Value v = pow_scalar(x);
    v = mean(v, 1, true);
    Value scale = rsqrt(add_scalar(v));
    x = mul(x, std::move(scale));
    x = mul(x, reshape(Value(c.b, n.weight), {1, -1, 1, 1}));
  }
  if (!n.activates) return x;
  InScope a(c.b, n.activation_scope);
  return unary(functions::gelu, x);
}

/// ConvNormAct.
struct ConvNormAct {
  ScopeId scope = 0;
  SameConv conv;
  MapNorm norm;
};
inline ConvNormAct make_conv_norm_act(Context& c, const char* name, const SameConvConfig& g, bool activates) {
  Module m(c, name);
  ConvNormAct r{.scope = m.scope};
  r.conv = make_same_conv(c, "conv", g);
  r.norm = make_map_norm(c, "bn", g.out, activates);
  return r;
}
inline Value forward(Context& c, const ConvNormAct& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = forward(c, l.conv, arg);
  x = forward(c, l.norm, x);
  return x;
}

/// LayerScale2d.
struct MapScale {
  ScopeId scope = 0;
  TensorId gamma = none;
};
inline MapScale make_map_scale(Context& c, std::int64_t channels) {
  Module m(c, "layer_scale");
  return {.scope = m.scope, .gamma = parameter(c, "gamma", {channels})};
}
inline Value forward(Context& c, const MapScale& l, const Value& x) {
  InScope in(c.b, l.scope);
  return eager::mul(x, eager::view(Value(c.b, l.gamma), {1, -1, 1, 1}));
}

/// timm's make_divisible by 8, which takes no more than a tenth away.
constexpr std::int64_t by_eights(std::int64_t channels) {
  const std::int64_t rounded = std::max<std::int64_t>(8, (channels + 4) / 8 * 8);
  return rounded * 10 < channels * 9 ? rounded + 8 : rounded;
}

/// A block of the tower as mobilenetv5.py's table writes it: er (EdgeResidual), uir (UniversalInvertedResidual), mqa
/// (MobileAttention with one head of keys and values).
struct MapBlockConfig {
  enum class Kind : std::uint8_t { er, uir, mqa } kind = Kind::uir;
  std::int64_t out = 0;
  std::int64_t stride = 1;
  std::int64_t expansion = 1;
  std::int64_t start = 0, middle = 3;  ///< sides of the depthwise filters ahead of and behind the expansion; 0: none
  std::int64_t heads = 0, head_dim = 0, key_stride = 1;
  bool operator==(const MapBlockConfig&) const = default;
};

/// EdgeResidual.
struct EdgeResidual {
  ScopeId scope = 0;
  SameConv expand, project;
  MapNorm expanded, projected;
  bool skips = false;
};
inline EdgeResidual make_edge_residual(Context& c, const MapBlockConfig& g, std::int64_t in) {
  EdgeResidual r{.scope = c.b.scope(), .skips = in == g.out && g.stride == 1};
  const std::int64_t wide = by_eights(checked_mul(in, g.expansion));
  r.expand = make_same_conv(c, "conv_exp", {.in = in, .out = wide, .side = 3, .stride = g.stride});
  r.expanded = make_map_norm(c, "bn1", wide, true);
  r.project = make_same_conv(c, "conv_pwl", {.in = wide, .out = g.out});
  r.projected = make_map_norm(c, "bn2", g.out, false);
  return r;
}
inline Value forward(Context& c, const EdgeResidual& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = forward(c, l.expand, arg);
  x = forward(c, l.expanded, x);
  x = forward(c, l.project, x);
  x = forward(c, l.projected, x);
  return l.skips ? eager::add(x, arg) : x;
}

/// UniversalInvertedResidual without a filter behind it.
struct InvertedResidual {
  ScopeId scope = 0;
  std::optional<ConvNormAct> start, middle;
  ConvNormAct expand, project;
  std::optional<MapScale> scale;
  bool skips = false;
};
/// In the current scope. `scaled`: its result goes through a LayerScale2d.
inline InvertedResidual make_inverted_residual(Context& c, const MapBlockConfig& g, std::int64_t in,
                                               bool scaled = true) {
  InvertedResidual r{.scope = c.b.scope(), .skips = scaled && in == g.out && g.stride == 1};
  const std::int64_t wide = by_eights(checked_mul(in, g.expansion));
  const auto depthwise = [&](const char* name, std::int64_t channels, std::int64_t side, std::int64_t stride,
                             bool acts) {
    return make_conv_norm_act(
        c, name, {.in = channels, .out = channels, .side = side, .stride = stride, .depthwise = true}, acts);
  };
  if (g.start > 0) r.start = depthwise("dw_start", in, g.start, g.middle > 0 ? 1 : g.stride, false);
  r.expand = make_conv_norm_act(c, "pw_exp", {.in = in, .out = wide}, true);
  if (g.middle > 0) r.middle = depthwise("dw_mid", wide, g.middle, g.stride, true);
  r.project = make_conv_norm_act(c, "pw_proj", {.in = wide, .out = g.out}, false);
  if (scaled) r.scale = make_map_scale(c, g.out);
  return r;
}
inline Value forward(Context& c, const InvertedResidual& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = arg;
  if (l.start) x = forward(c, *l.start, x);
  x = forward(c, l.expand, x);
  if (l.middle) x = forward(c, *l.middle, x);
  x = forward(c, l.project, x);
  if (l.scale) x = forward(c, *l.scale, x);
  return l.skips ? eager::add(x, arg) : x;
}

}  // namespace vlmest
