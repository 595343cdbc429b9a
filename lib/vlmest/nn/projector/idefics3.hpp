// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// Squares of `scale` x `scale` neighbouring patches joined along the channels, then a linear without bias
/// (transformers models/idefics3, Idefics3Connector).
struct Idefics3Projector {
  std::int64_t in = 1152;   ///< vision width
  std::int64_t out = 4096;  ///< language width
  std::int64_t scale = 2;   ///< scale_factor
};

struct Idefics3Connector {
  ScopeId scope = 0, projection_scope = 0;
  std::int64_t scale = 2;
  Linear projection;
};

inline Idefics3Connector make_projector(Context& c, const Idefics3Projector& g) {
  Idefics3Connector p{.scope = c.b.scope(), .scale = g.scale};
  Module m(c, "modality_projection");
  p.projection_scope = m.scope;
  p.projection = make_linear(c, "proj", checked_mul(g.in, checked_mul(g.scale, g.scale)), g.out, false);
  return p;
}

/// modeling_idefics3.py, Idefics3Connector.pixel_shuffle: [N, s * s, D] -> [N, (s / scale)^2, D * scale^2].
inline Value connector_shuffle(const Value& features, std::int64_t scale) {
  using namespace eager;
  const std::int64_t n = features.size(0), tokens = features.size(1), d = features.size(2);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(tokens)));
  Value x = view(features, {n, side, side, d});
  x = view(x, {n, side, side / scale, d * scale});
  x = permute(x, {0, 2, 1, 3});
  x = reshape(x, {n, side / scale, side / scale, d * scale * scale});
  x = permute(x, {0, 2, 1, 3});
  x = reshape(x, {n, tokens / (scale * scale), d * scale * scale});
  return x;
}

inline Value forward(Context& c, const Idefics3Connector& p, const Value& features) {
  InScope in(c.b, p.scope);
  Value x = connector_shuffle(features, p.scale);
  InScope projection(c.b, p.projection_scope);
  return forward(c, p.projection, x);
}

}  // namespace vlmest
