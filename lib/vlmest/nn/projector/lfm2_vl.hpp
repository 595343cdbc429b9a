// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Squares of neighbouring patches joined, normed where it is asked for, and put through two linears (transformers
/// models/lfm2_vl, Lfm2VlMultiModalProjector).
struct Lfm2VlProjectorConfig {
  std::int64_t in = 768;      ///< vision width
  std::int64_t inner = 2560;  ///< projector_hidden_size
  std::int64_t out = 2560;    ///< language width
  std::int64_t scale = 2;     ///< downsample_factor
  Activation activation = Activation::gelu;
  bool bias = true;
  bool norm = true;  ///< projector_use_layernorm
};

struct Lfm2VlProjector {
  ScopeId scope = 0, activation_scope = 0;
  std::int64_t scale = 2;
  Activation activation = Activation::gelu;
  std::optional<LayerNorm> norm;
  Linear first, second;
};

inline Lfm2VlProjector make_projector(Context& c, const Lfm2VlProjectorConfig& g) {
  Lfm2VlProjector p{.scope = c.b.scope(), .scale = g.scale, .activation = g.activation};
  const std::int64_t joined = checked_mul(g.in, checked_mul(g.scale, g.scale));
  if (g.norm) p.norm = make_layer_norm(c, "layer_norm", joined);
  p.first = make_linear(c, "linear_1", joined, g.inner, g.bias);
  p.activation_scope = c.b.child("act");
  p.second = make_linear(c, "linear_2", g.inner, g.out, g.bias);
  return p;
}

/// Lfm2VlMultiModalProjector.pixel_unshuffle: [1, rows, cols, D] -> [1, rows / scale, cols / scale, D * scale^2].
inline Value unshuffle(const Value& features, std::int64_t scale) {
  using namespace eager;
  const std::int64_t rows = features.size(1), cols = features.size(2), d = features.size(3);
  Value x = reshape(features, {1, rows, cols / scale, d * scale});
  x = permute(x, {0, 2, 1, 3});
  x = reshape(x, {1, cols / scale, rows / scale, d * scale * scale});
  x = permute(x, {0, 2, 1, 3});
  return x;
}

/// Lfm2VlMultiModalProjector.forward.
inline Value forward(Context& c, const Lfm2VlProjector& p, const Value& features) {
  InScope in(c.b, p.scope);
  Value joined = unshuffle(features, p.scale);
  if (p.norm) joined = forward(c, *p.norm, joined);
  Value x = forward(c, p.first, joined);
  {
    InScope a(c.b, p.activation_scope);
    x = activate(c, p.activation, x);
  }
  x = forward(c, p.second, x);
  return x;
}

}  // namespace vlmest
