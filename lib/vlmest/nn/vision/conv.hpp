// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/convolution.hpp>
#include <vlmest/nn/context.hpp>

namespace vlmest {

/// torch.nn.Conv2d of square kernels, weight[out, in, side, side] and on request bias[out].
struct ConvConfig {
  std::int64_t in = 0, out = 0;
  std::int64_t side = 3, stride = 1, padding = 1;
  bool bias = false;
};
struct Conv {
  ScopeId scope = 0;
  TensorId weight = none, bias = none;
  std::int64_t stride = 1, padding = 0;
};

inline Conv make_conv(Context& c, const char* name, const ConvConfig& g) {
  Module m(c, name);
  Conv r{.scope = m.scope, .stride = g.stride, .padding = g.padding};
  r.weight = parameter(c, "weight", {g.out, g.in, g.side, g.side});
  if (g.bias) r.bias = parameter(c, "bias", {g.out});
  return r;
}

inline Value forward(Context& c, const Conv& m, Value x) {
  InScope in(c.b, m.scope);
  Value bias = m.bias == none ? Value() : Value(c.b, m.bias);
  return eager::conv2d_padded(std::move(x), Value(c.b, m.weight), m.stride, m.padding, std::move(bias));
}

/// Two convolutions that halve the sides of a map of features each: a 16th of the positions.
struct ConvPair {
  Conv first, second;
};
inline ConvPair make_halvings(Context& c, const char* first, const char* second, std::int64_t in, std::int64_t between,
                              std::int64_t out, bool bias = false) {
  ConvPair p;
  p.first = make_conv(c, first, {.in = in, .out = between, .stride = 2, .bias = bias});
  p.second = make_conv(c, second, {.in = between, .out = out, .stride = 2, .bias = bias});
  return p;
}
/// Each step rebinds the variable.
inline Value forward(Context& c, const ConvPair& p, Value features) {
  Value x = forward(c, p.first, std::move(features));
  x = forward(c, p.second, x);
  return x;
}

/// Sides after those two.
constexpr std::int64_t halved_twice(std::int64_t side) { return ((side + 1) / 2 + 1) / 2; }

}  // namespace vlmest
