// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// What a pooler gives: features in fp32 and which of them are no padding.
struct Pooled {
  Value features;  ///< [images, patches / pool^2, hidden]
  Value mask;      ///< bool[images, patches / pool^2]
};

/// torch.nn.functional.one_hot: int64 zeros, one written into each row.
inline Value one_hot(const Value& index, std::int64_t classes) {
  using namespace eager;
  Builder& b = index.builder();
  Shape s = index.shape();
  s.push_back(classes);
  Value zeros = fill(b, "zeros", s, DType::int64), at = index;
  const Bytes n = data_bytes(index);
  return emit_inplace(b, "scatter_.value", MemoryOp{.read = n, .written = n, .dtype = DType::int64}, {}, zeros, at);
}

/// transformers 5.17 modeling_gemma4.py, Gemma4VisionPooler._avg_pool_by_positions: squares of pool x pool patches are
/// averaged by a product with a matrix that says which patch belongs to which square.
inline Pooled average_by_positions(const Value& x, const Value& position_ids, std::int64_t pool) {
  using namespace eager;
  const std::int64_t squares = x.size(1) / checked_mul(pool, pool);
  const Value clamped = pointwise("clamp", DType::int64, position_ids);
  const Value widest = add_scalar(max_values(select(clamped, -1, 0)));
  Value places = pointwise("div.Tensor_mode", DType::int64, clamped);
  {
    Value across = unary("floor_divide", widest);
    Value above = mul(std::move(across), select(places, -1, 1));
    places = add(select(places, -1, 0), std::move(above));
  }
  const Value weights = div_scalar(to(one_hot(places, squares), DType::fp32));
  const Value output = matmul(transpose(weights, 1, 2), to(x, DType::fp32));
  Pooled r;
  r.mask = pointwise("logical_not", DType::boolean, all_of(compare_scalar("eq.Scalar", weights), 1));
  r.features = to(output, x.dtype());
  return r;
}

/// Gemma4VisionPooler.forward.
inline Pooled pool_by_positions(Context&, const Value& hidden, const Value& position_ids, const Value& padding,
                                std::int64_t pool) {
  using namespace eager;
  Value x = masked_fill(hidden, unsqueeze(padding, -1));
  Pooled r = average_by_positions(x, position_ids, pool);
  x = std::move(r.features);
  x = mul_scalar(to(x, DType::fp32));
  r.features = std::move(x);
  return r;
}

}  // namespace vlmest
