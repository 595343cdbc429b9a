// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma4.py and modeling_gemma4_unified.py, …MultimodalEmbedder: a norm without a weight
/// and a linear into the language model's width.
struct Gemma4Embedder {
  ScopeId scope = 0;
  Linear projection;
  RmsNorm norm;
};

/// In the current scope.
inline Gemma4Embedder make_gemma4_embedder(Context& c, std::int64_t in, std::int64_t out) {
  Gemma4Embedder e{.scope = c.b.scope()};
  e.projection = make_linear(c, "embedding_projection", in, out, false);
  e.norm = make_weightless_norm(c, "embedding_pre_projection_norm");
  return e;
}

inline Value forward(Context& c, const Gemma4Embedder& e, const Value& features) {
  InScope in(c.b, e.scope);
  const Value normed = forward(c, e.norm, features);
  return forward(c, e.projection, normed);
}

}  // namespace vlmest
