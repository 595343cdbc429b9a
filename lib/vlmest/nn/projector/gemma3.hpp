// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/pool.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// Patches averaged over square windows, normed, projected (transformers models/gemma3, Gemma3MultiModalProjector).
struct Gemma3Projector {
  std::int64_t in = 1152;   ///< vision width
  std::int64_t out = 2560;  ///< language width
  std::int64_t side = 64;   ///< patches of one side of a picture
  std::int64_t window = 4;  ///< patches of one side of a window
};

struct Gemma3Pool {
  const Gemma3Projector* config = nullptr;
  ScopeId scope = 0, pool_scope = 0;
  TensorId weight = none;  ///< [in, out]
  RmsNorm norm;
};

inline Gemma3Pool make_projector(Context& c, const Gemma3Projector& g) {
  Gemma3Pool p{.config = &g, .scope = c.b.scope()};
  p.weight = parameter(c, "mm_input_projection_weight", {g.in, g.out});
  p.norm = make_rms_norm(c, "mm_soft_emb_norm", g.in, RmsNorm::Kind::gemma);
  p.pool_scope = c.b.child("avg_pool");
  return p;
}

/// modeling_gemma3.py, Gemma3MultiModalProjector.forward: [N, patches, in] -> [N, tokens, out]. torch.matmul folds the
/// pictures into rows, a copy where the pooled features still lie channel by channel.
inline Value forward(Context& c, const Gemma3Pool& p, Value arg) {
  using namespace eager;
  const Gemma3Projector& g = *p.config;
  Value features = std::move(arg);
  InScope in(c.b, p.scope);
  const std::int64_t n = features.size(0);
  Value x = reshape(transpose(features, 1, 2), {n, g.in, g.side, g.side});
  x = contiguous(x);
  Value pooled;
  {
    InScope pool(c.b, p.pool_scope);
    pooled = avg_pool2d(x, g.window);
  }
  pooled = transpose(flatten(std::move(pooled), 2, 3), 1, 2);
  Value normed = forward(c, p.norm, pooled);
  Value projected = matmul_rows(normed, Value(c.b, p.weight));
  return to(std::move(projected), features.dtype());
}

}  // namespace vlmest
