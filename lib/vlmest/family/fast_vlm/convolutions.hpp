// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>

#include <vlmest/family/fast_vlm/config.hpp>
#include <vlmest/graph/eager/batch_norm.hpp>
#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/graph/eager/rows_convolution.hpp>
#include <vlmest/nn/context.hpp>

/// What FastViT is made of (timm 1.0.29 models/fastvit.py, layers/conv_bn_act.py, layers/norm_act.py, layers/
/// squeeze_excite.py): convolutions, in training with branches that each have a norm over the batch, merged into one
/// convolution for inference.
namespace vlmest {

/// torch.nn.Conv2d of square filters.
struct MapConv {
  ScopeId scope = 0;
  TensorId weight = none, bias = none;
  std::int64_t stride = 1, padding = 0;
};
struct MapConvConfig {
  std::int64_t in = 0, out = 0;
  std::int64_t side = 1, stride = 1;
  bool depthwise = false;
};
inline MapConv make_map_conv(Context& c, const char* name, const MapConvConfig& g, bool bias) {
  Module m(c, name);
  MapConv r{.scope = m.scope, .stride = g.stride, .padding = fastvit_padding(g.side, g.stride)};
  r.weight = parameter(c, "weight", {g.out, g.depthwise ? 1 : g.in, g.side, g.side});
  if (bias) r.bias = parameter(c, "bias", {g.out});
  return r;
}
inline Value forward(Context& c, const MapConv& l, const Value& x) {
  InScope in(c.b, l.scope);
  const Value weight(c.b, l.weight), bias = l.bias == none ? Value() : Value(c.b, l.bias);
  return eager::rows_conv2d(x, weight, bias, {l.stride, l.stride}, l.padding);
}

/// torch.nn.BatchNorm2d, and timm's BatchNormAct2d without an activation.
struct BatchNorm {
  ScopeId scope = 0;
  TensorId weight = none, bias = none, mean = none, variance = none, batches = none;
};
inline BatchNorm make_batch_norm(Context& c, const char* name, std::int64_t channels) {
  Module m(c, name);
  BatchNorm n{.scope = m.scope};
  n.weight = parameter(c, "weight", {channels});
  n.bias = parameter(c, "bias", {channels});
  n.mean = buffer(c, "running_mean", {channels}, c.dtype());
  n.variance = buffer(c, "running_var", {channels}, c.dtype());
  n.batches = buffer(c, "num_batches_tracked", Shape{}, DType::int64);
  return n;
}
/// In training mode batches are counted first, on the device.
inline Value forward(Context& c, const BatchNorm& n, const Value& x) {
  using namespace eager;
  InScope in(c.b, n.scope);
  const bool trains = c.plan.dropout;
  if (trains) pointwise_("add_.Tensor", Value(c.b, n.batches));
  return batch_norm(x, {Value(c.b, n.weight), Value(c.b, n.bias), Value(c.b, n.mean), Value(c.b, n.variance), trains});
}

/// ConvNormAct with apply_act=False.
struct ConvNorm {
  ScopeId scope = 0;
  MapConv conv;
  BatchNorm norm;
};
inline ConvNorm make_conv_norm(Context& c, const char* name, const MapConvConfig& g, std::int32_t index = none) {
  Module m(c, name, index);
  ConvNorm r{.scope = m.scope};
  r.conv = make_map_conv(c, "conv", g, false);
  r.norm = make_batch_norm(c, "bn", g.out);
  return r;
}
inline Value forward(Context& c, const ConvNorm& l, const Value& arg) {
  InScope in(c.b, l.scope);
  Value x = forward(c, l.conv, arg);
  x = forward(c, l.norm, x);
  return x;
}

/// SEModule: the channels' means through two convolutions become their weights.
struct SqueezeExcite {
  ScopeId scope = 0, act_scope = 0, gate_scope = 0;
  MapConv reduce, expand;
};
/// timm layers/helpers.py, make_divisible with round_limit 0.
constexpr std::int64_t divisible(double channels, std::int64_t by) {
  return std::max(by, static_cast<std::int64_t>(channels + static_cast<double>(by) / 2) / by * by);
}
inline SqueezeExcite make_squeeze_excite(Context& c, std::int64_t channels, std::int64_t reduced) {
  Module m(c, "se");
  SqueezeExcite s{.scope = m.scope};
  s.reduce = make_map_conv(c, "fc1", {.in = channels, .out = reduced}, true);
  s.act_scope = c.b.child("act");
  s.expand = make_map_conv(c, "fc2", {.in = reduced, .out = channels}, true);
  s.gate_scope = c.b.child("gate");
  return s;
}
inline Value forward(Context& c, const SqueezeExcite& s, const Value& x) {
  using namespace eager;
  InScope in(c.b, s.scope);
  Value weights = mean_of_maps(x);
  weights = forward(c, s.reduce, weights);
  {
    InScope act(c.b, s.act_scope);
    weights = relu_(std::move(weights));
  }
  weights = forward(c, s.expand, weights);
  Value gate;
  {
    InScope g(c.b, s.gate_scope);
    gate = unary(functions::sigmoid, weights);
  }
  return mul(x, std::move(gate));
}

/// torch.nn.GELU of the scope's module.
inline Value gelu(Context& c, ScopeId scope, const Value& x) {
  InScope in(c.b, scope);
  return eager::unary(eager::functions::gelu, x);
}

/// LayerScale2d.
struct ChannelScale {
  ScopeId scope = 0;
  TensorId gamma = none;
};
inline ChannelScale make_channel_scale(Context& c, const char* name, std::int64_t channels) {
  Module m(c, name);
  return {.scope = m.scope, .gamma = parameter(c, "gamma", {channels, 1, 1})};
}
inline Value forward(Context& c, const ChannelScale& l, const Value& x) {
  InScope in(c.b, l.scope);
  return eager::mul(x, Value(c.b, l.gamma));
}

}  // namespace vlmest
