// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Squares of neighbouring patches joined, normed, and put through a gated MLP with one wide first linear
/// (transformers models/aya_vision, AyaVisionMultiModalProjector; models/cohere2_vision,
/// Cohere2VisionMultiModalProjector, which has no norm).
struct AyaVisionProjectorConfig {
  std::int64_t in = 1152;            ///< vision width
  std::int64_t intermediate = 8192;  ///< alignment_intermediate_size: both halves of the gate
  std::int64_t out = 8192;           ///< language width
  std::int64_t scale = 2;            ///< downsample_factor
  bool norm = true;                  ///< of the joined squares
};

struct AyaVisionProjector {
  ScopeId scope = 0, activation_scope = 0;
  std::int64_t scale = 2;
  std::optional<LayerNorm> norm;
  Linear first, second;
};

inline AyaVisionProjector make_projector(Context& c, const AyaVisionProjectorConfig& g) {
  AyaVisionProjector p{.scope = c.b.scope(), .scale = g.scale};
  const std::int64_t joined = checked_mul(g.in, checked_mul(g.scale, g.scale));
  if (g.norm) p.norm = make_layer_norm(c, "layernorm", joined);
  p.first = make_linear(c, "linear_1", joined, g.intermediate, true);
  p.activation_scope = c.b.child("act");
  p.second = make_linear(c, "linear_2", g.intermediate / 2, g.out, true);
  return p;
}

/// modeling_aya_vision.py, AyaVisionMultiModalProjector.pixel_shuffle: [N, s * s, D] -> [N, s / scale, s / scale,
/// D * scale^2].
inline Value join_squares(const Value& features, std::int64_t scale) {
  using namespace eager;
  const std::int64_t n = features.size(0), d = features.size(2);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(features.size(1))));
  Value x = reshape(features, {n, side, side, d});
  x = reshape(x, {n, side, side / scale, d * scale});
  x = permute(x, {0, 2, 1, 3});
  x = reshape(x, {n, side / scale, side / scale, d * scale * scale});
  x = permute(x, {0, 2, 1, 3});
  return x;
}

/// …MultiModalProjector.forward: both halves of the first linear stay alive to the end.
inline Value forward(Context& c, const AyaVisionProjector& p, const Value& features) {
  using namespace eager;
  InScope in(c.b, p.scope);
  Value x = join_squares(features, p.scale);
  if (p.norm) x = forward(c, *p.norm, x);
  Value both = forward(c, p.first, x);
  if (c.stack().fuses_gate) return forward(c, p.second, fused_gate(std::move(both)));
  const std::int64_t half = both.size(-1) / 2;
  const std::array<std::int64_t, 2> halves{half, half};
  std::vector<Value> parts = split(both, halves, -1);
  Value value = std::move(parts[0]), gate = std::move(parts[1]);
  Value hidden;
  {
    InScope a(c.b, p.activation_scope);
    hidden = activate(c, Activation::silu, gate);
  }
  hidden = mul(std::move(hidden), value);
  both.reset();
  return forward(c, p.second, hidden);
}

}  // namespace vlmest
