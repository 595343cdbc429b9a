// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// torch.nn.Embedding: weight[rows, width].
struct Embedding {
  ScopeId scope = 0;
  TensorId weight = none;
};

inline Embedding make_embedding(Context& c, const char* name, std::int64_t rows, std::int64_t width) {
  Module m(c, name);
  const TensorId weight = parameter(c, "weight", {rows, width});
  c.b.graph.embeddings.push_back(weight);
  return {.scope = m.scope, .weight = weight};
}

/// ids[...] -> [..., width].
inline Value forward(Context& c, const Embedding& e, Value ids) {
  InScope in(c.b, e.scope);
  return eager::embedding(Value(c.b, e.weight), std::move(ids));
}

/// Token embeddings [B, S, hidden] of a decoder that takes them as they are.
template <class Decoder>
Value embed(Context& c, const Decoder& d, const Value& input_ids) {
  return input_embedding(c, forward(c, d.embed_tokens, input_ids));
}

}  // namespace vlmest
