// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/embedding.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// transformers 5.17 modeling_gemma3n.py, Gemma3nMultimodalEmbedder: a tower's features into the language model's
/// width, and the tokens that stand for what its tower sees or hears, out of a table of its own.
struct Gemma3nEmbedder {
  ScopeId scope = 0;
  Embedding table;
  RmsNorm hard_norm, soft_norm, post_norm;
  Linear projection;
};

/// In the current scope.
inline Gemma3nEmbedder make_gemma3n_embedder(Context& c, std::int64_t vocab, std::int64_t in, std::int64_t out) {
  Gemma3nEmbedder e{.scope = c.b.scope()};
  e.table = make_embedding(c, "embedding", vocab, in);
  e.hard_norm = make_rms_norm(c, "hard_embedding_norm", in, RmsNorm::Kind::gemma4);
  e.soft_norm = make_rms_norm(c, "soft_embedding_norm", in, RmsNorm::Kind::gemma4);
  e.projection = make_linear(c, "embedding_projection", in, out, false);
  e.post_norm = make_weightless_norm(c, "embedding_post_projection_norm");
  return e;
}

inline Value embed_features(Context& c, const Gemma3nEmbedder& e, const Value& features) {
  InScope in(c.b, e.scope);
  const Value normed = forward(c, e.soft_norm, features);
  const Value projected = forward(c, e.projection, normed);
  return forward(c, e.post_norm, projected);
}
inline Value embed_tokens(Context& c, const Gemma3nEmbedder& e, const Value& ids) {
  InScope in(c.b, e.scope);
  Value own = eager::sub_scalar(ids);
  const Value rows = forward(c, e.table, std::move(own));
  const Value normed = forward(c, e.hard_norm, rows);
  const Value projected = forward(c, e.projection, normed);
  return forward(c, e.post_norm, projected);
}

}  // namespace vlmest
