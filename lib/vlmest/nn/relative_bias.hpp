// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/embedding.hpp>

/// Biases of relative positions in buckets (Raffel et al., arXiv:1910.10683, section 2.1; transformers models/t5,
/// T5Attention).
namespace vlmest {

/// T5Attention._relative_position_bucket: int64[Q, L] -> the same. Half of the buckets are exact distances, the others
/// grow with the logarithm; both directions share them where attention looks both ways.
inline Value position_buckets(const Value& relative, bool both_ways) {
  using namespace eager;
  Value position = relative, buckets;
  if (both_ways) {
    buckets = add_scalar(mul_scalar(to(compare_scalar("gt.Scalar", position), DType::int64)));
    position = unary("abs", position);
  } else {
    const DType t = position.dtype();
    Value zeros = fill(position.builder(), "zeros_like", position.shape(), t);
    position = neg(pointwise("minimum", t, position, std::move(zeros)));
  }
  const Value is_small = compare_scalar("lt.Scalar", position);
  Value scaled = unary("log", div_scalar(to(position, DType::fp32)));
  Value large = add_scalar(to(mul_scalar(div_scalar(std::move(scaled))), DType::int64));
  Value last = fill(position.builder(), "full_like", large.shape(), large.dtype());
  large = pointwise("minimum", large.dtype(), large, std::move(last));
  Value chosen = where(is_small, position, large);
  return buckets ? add_(buckets, std::move(chosen)) : add_scalar(std::move(chosen));
}

/// T5Attention.compute_bias: [1, H, Q, L], a view of [Q, L, H]; `seen`: tokens that the cache held before.
inline Value relative_position_bias(Context& c, const Embedding& table, std::int64_t queries, std::int64_t keys,
                                    bool both_ways) {
  using namespace eager;
  const Value context = add_scalar(unsqueeze(arange(c.b, queries), 1));
  const Value memory = unsqueeze(arange(c.b, keys), 0);
  const Value relative = sub(memory, context);
  const Value buckets = position_buckets(relative, both_ways);
  Value values = forward(c, table, buckets);
  return unsqueeze(permute(std::move(values), {2, 0, 1}), 0);
}

}  // namespace vlmest
