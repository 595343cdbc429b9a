// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// A norm of each patch, then two layers over those that are merged into a row: the projector of Moonshot AI's models
/// (Kimi-VL's KimiVLMultiModalProjector; transformers models/kimi_k25, Kimi_K25MultimodalProjection).
struct MergedMlp {
  std::int64_t in = 1152;   ///< the tower's width
  std::int64_t merged = 4;  ///< patches in a row
  std::int64_t out = 7168;

  std::int64_t row() const { return checked_mul(in, merged); }
};

struct MergedMlpLayers {
  const MergedMlp* config = nullptr;
  ScopeId scope = 0, activation_scope = 0;
  LayerNorm norm;
  Linear in, out;
};

/// In the order of both classes' __init__; `first` and `second` are what they call their layers.
inline MergedMlpLayers make_merged_mlp(Context& c, const MergedMlp& g, const char* first, const char* second) {
  MergedMlpLayers p{.config = &g, .scope = c.b.scope()};
  p.norm = make_layer_norm(c, "pre_norm", g.in);
  p.in = make_linear(c, first, g.row(), g.row(), true);
  p.activation_scope = c.b.child("act");
  p.out = make_linear(c, second, g.row(), g.out, true);
  return p;
}

/// What both forwards do with x, patches of `in` channels, whose norm is viewed as `rows`; each step rebinds the
/// variable.
inline Value project_rows(Context& c, const MergedMlpLayers& p, Value x, const Shape& rows) {
  using namespace eager;
  x = view(forward(c, p.norm, x), rows);
  x = forward(c, p.in, x);
  {
    InScope a(c.b, p.activation_scope);
    x = unary(functions::gelu, x);
  }
  return forward(c, p.out, x);
}

}  // namespace vlmest
