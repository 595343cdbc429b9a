// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// A patch embedding: a convolution whose stride is its kernel, weight[hidden, channels, side, side].
struct PatchConv {
  ScopeId scope = 0;
  std::int64_t side = 1;
  TensorId weight = none, bias = none;
};

/// Of a tower's config with hidden, channels and patch_size.
template <class Vision>
PatchConv make_patch_conv(Context& c, const char* name, const Vision& g, bool bias) {
  Module m(c, name);
  PatchConv p{.scope = m.scope, .side = g.patch_size};
  p.weight = parameter(c, "weight", {g.hidden, g.channels, g.patch_size, g.patch_size});
  if (bias) p.bias = parameter(c, "bias", {g.hidden});
  return p;
}

/// pixels[N, channels, H, W] -> [N, hidden, H / side, W / side].
inline Value forward(Context& c, const PatchConv& p, const Value& pixels) {
  InScope in(c.b, p.scope);
  return eager::conv2d(pixels, Value(c.b, p.weight), p.bias == none ? Value() : Value(c.b, p.bias), p.side);
}

/// pixels[patches, channels, side, side], each as large as the kernel -> [patches, hidden].
inline Value embed_patches(Context& c, const PatchConv& p, const Value& pixels) {
  Value x;
  {
    InScope in(c.b, p.scope);
    x = eager::patch_conv2d(pixels, Value(c.b, p.weight), Value(c.b, p.bias));
  }
  return eager::view(std::move(x), {pixels.size(0), -1});
}

/// [N, hidden, rows, columns] -> [N, patches, hidden], a view.
inline Value patch_sequence(Value patches) { return eager::transpose(eager::flatten(std::move(patches), 2, 3), 1, 2); }

}  // namespace vlmest
