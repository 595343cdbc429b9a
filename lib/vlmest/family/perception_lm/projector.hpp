// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// PerceptionLMMultiModalProjector (transformers 5.17 models/perception_lm): two linear layers over patches ahead of
/// pictures, and means of squares of their results.
struct PerceptionProjector {
  ScopeId scope = 0, activation_scope = 0, pool_scope = 0;
  Linear first, second;
  std::int64_t ratio = 1;
};

/// In the current scope. Without pooling an Identity stands in its place.
inline PerceptionProjector make_perception_projector(Context& c, std::int64_t in, std::int64_t out,
                                                     std::int64_t ratio) {
  PerceptionProjector p{.scope = c.b.scope(), .ratio = ratio};
  p.first = make_linear(c, "linear_1", in, out, true);
  p.activation_scope = c.b.child("gelu");
  p.second = make_linear(c, "linear_2", out, out, true);
  p.pool_scope = c.b.child("pooling");
  return p;
}

/// PerceptionLMAdaptiveAvgPooling.forward of x[N, side * side, width]; squares overlap where the ratio does not divide
/// the side.
inline Value pool_patches(Context& c, const PerceptionProjector& p, const Value& x) {
  using namespace eager;
  InScope in(c.b, p.pool_scope);
  std::int64_t side = 0;
  while (checked_mul(side + 1, side + 1) <= x.size(1)) ++side;
  if (checked_mul(side, side) != x.size(1))
    throw Error("blocks", std::to_string(x.size(1)) + " features of a tile do not fill a square, which is pooled",
                "leave as many rows as columns");
  Value h = permute(x, {0, 2, 1});
  h = reshape(h, {x.size(0), -1, side, side});
  h = adaptive_avg_pool2d(h, side / p.ratio, side / p.ratio);
  return transpose(flatten(std::move(h), 2, 3), 1, 2);
}

/// features[N, patches, in] -> [N, pooled, out].
inline Value forward(Context& c, const PerceptionProjector& p, const Value& features) {
  using namespace eager;
  InScope in(c.b, p.scope);
  Value x = permute(features, {1, 0, 2});
  x = forward(c, p.first, x);
  {
    InScope act(c.b, p.activation_scope);
    x = activate(c, Activation::gelu, x);
  }
  x = forward(c, p.second, x);
  x = permute(x, {1, 0, 2});
  return p.ratio > 1 ? pool_patches(c, p, x) : x;
}

}  // namespace vlmest
