// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/conv1d.hpp>
#include <vlmest/nn/context.hpp>

namespace vlmest {

/// torch.nn.Conv1d with a bias: weight[out, in, taps].
struct Conv1d {
  ScopeId scope = 0;
  TensorId weight = none, bias = none;
  std::int64_t stride = 1, padding = 0;
};

inline Conv1d make_conv1d(Context& c, const char* name, std::int64_t in, std::int64_t out, std::int64_t taps,
                          std::int64_t stride) {
  Module m(c, name);
  Conv1d r{.scope = m.scope, .stride = stride, .padding = taps / 2};
  r.weight = parameter(c, "weight", {out, in, taps});
  r.bias = parameter(c, "bias", {out});
  return r;
}

inline Value forward(Context& c, const Conv1d& l, Value x) {
  InScope in(c.b, l.scope);
  return eager::conv1d(std::move(x), Value(c.b, l.weight), Value(c.b, l.bias), l.stride, l.padding);
}

/// torch.nn.Conv2d by three taps each way that halves both, with a bias or without.
struct HalvingConv2d {
  ScopeId scope = 0;
  TensorId weight = none, bias = none;
};
inline HalvingConv2d make_halving_conv2d(Context& c, const char* name, std::int64_t in, std::int64_t out,
                                         bool bias = true) {
  Module m(c, name);
  HalvingConv2d r{.scope = m.scope};
  r.weight = parameter(c, "weight", {out, in, 3, 3});
  if (bias) r.bias = parameter(c, "bias", {out});
  return r;
}
inline Value forward(Context& c, const HalvingConv2d& l, Value x) {
  InScope in(c.b, l.scope);
  return eager::strided_conv2d(std::move(x), Value(c.b, l.weight), l.bias == none ? Value() : Value(c.b, l.bias), 2, 1);
}

}  // namespace vlmest
