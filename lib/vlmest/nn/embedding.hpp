// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/sharding.hpp>

namespace vlmest {

/// torch.nn.Embedding: weight[rows, width].
struct Embedding {
  ScopeId scope = 0;
  TensorId weight = none;
  bool sharded = false;  ///< this rank has some of the rows
};

inline Embedding make_embedding(Context& c, const char* name, std::int64_t rows, std::int64_t width) {
  Module m(c, name);
  const bool sharded = shard_style(c) == ShardStyle::embedding_rowwise;
  const TensorId weight = parameter(c, "weight", {sharded ? shard_of(c, rows) : rows, width});
  if (sharded) note_shard(c, weight);
  c.b.graph.embeddings.push_back(weight);
  return {.scope = m.scope, .weight = weight, .sharded = sharded};
}

/// Ids of rows that other ranks have give zeros, and what all ranks give is summed
/// (torch/distributed/tensor/_ops/_mask_buffer.py and _embedding_ops.py, _MaskPartial).
inline Value sharded(Context& c, const Embedding& e, const Value& ids) {
  using namespace eager;
  Value rows;
  {
    Value below = compare_scalar("lt.Scalar", ids);
    Value above = compare_scalar("ge.Scalar", ids);
    const Value elsewhere = compare("bitwise_or.Tensor", std::move(below), std::move(above));
    Value own = pointwise("sub.Tensor", ids.dtype(), clone(ids));
    own = masked_fill_(std::move(own), elsewhere);
    rows = embedding(Value(c.b, e.weight), std::move(own));
    Value filled = detached(rows);
    masked_fill_(std::move(filled), unsqueeze(elsewhere, -1));
  }
  return sum_of_ranks(std::move(rows), c.sharding->ranks);
}

/// ids[...] -> [..., width].
inline Value forward(Context& c, const Embedding& e, Value ids) {
  InScope in(c.b, e.scope);
  if (e.sharded) return sharded(c, e, ids);
  return eager::embedding(Value(c.b, e.weight), std::move(ids));
}

/// Token embeddings [B, S, hidden] of a decoder that takes them as they are.
template <class Decoder>
Value embed(Context& c, const Decoder& d, const Value& input_ids) {
  return input_embedding(c, forward(c, d.embed_tokens, input_ids));
}

}  // namespace vlmest
