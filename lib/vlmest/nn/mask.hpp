// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// What a decoder's attention mask is made from: the caller's mask[B, L] (int64) and the cache's state.
struct MaskShape {
  std::int64_t batch = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::optional<std::int64_t> window;  ///< sliding window of the layers that use this mask
};

/// Four aligned index ranges (masking_utils.py, sdpa_mask): batch, head, query, key.
struct MaskIndices {
  Value batch, head, query, key;
};
inline MaskIndices mask_indices(Context& c, const MaskShape& m) {
  using namespace eager;
  MaskIndices r;
  r.batch = arange(c.b, m.batch);
  r.head = arange(c.b, 1);
  Value q = arange(c.b, m.q_len);
  r.query = add_scalar(std::move(q));
  Value k = arange(c.b, m.kv_len);
  r.key = add_scalar(std::move(k));
  return r;
}

/// mask & next: the running result is rebound after each step (masking_utils.py, and_masks).
inline void and_mask(Value& result, Value next) {
  result = eager::pointwise("bitwise_and.Tensor", DType::boolean, result, std::move(next));
}

/// The causal (and sliding-window) boolean mask with padding, written out by broadcasting: bool[B, 1, Q, L].
inline Value materialised_mask(Context& c, const MaskShape& m, const Value& padding) {
  using namespace eager;
  MaskIndices at = mask_indices(c, m);
  Value q = view(at.query, {1, 1, m.q_len, 1}), k = view(at.key, {1, 1, 1, m.kv_len});
  Value rows = view(at.batch, {m.batch, 1, 1, 1});
  at.query.reset();
  at.key.reset();
  auto causal = [&] { return compare("le.Tensor", k, q); };
  auto all_true = [&] { return fill(c.b, "new_ones", Shape{}, DType::boolean); };
  Value result = all_true();
  if (m.window) {
    // and_masks(and_masks(sliding, causal), padding)
    Value inner = all_true();
    Value bound = sub_scalar(q);
    Value visible = compare("gt.Tensor", k, std::move(bound));
    and_mask(inner, std::move(visible));
    Value lower = causal();
    and_mask(inner, std::move(lower));
    and_mask(result, std::move(inner));
  } else {
    Value lower = causal();
    and_mask(result, std::move(lower));
  }
  if (padding) {
    Value real = index(padding, rows, k, {m.batch, 1, 1, m.kv_len});
    and_mask(result, std::move(real));
  }
  return expand(result, {m.batch, -1, m.q_len, m.kv_len});
}

/// A boolean mask as an additive one in the activations' type (masking_utils.py, eager_mask).
inline Value additive_mask(Context& c, Value mask) {
  using namespace eager;
  Value m = std::move(mask);
  Value zero = from_host(c.b, Shape{}, c.dtype());
  Value lowest = fill(c.b, "scalar_tensor", Shape{}, c.dtype());
  return where(m, std::move(zero), std::move(lowest));
}

/// tensor.sum() == tensor.numel(), read by the host (masking_utils.py, fast_all).
inline void check_all_true(const Value& mask) {
  using namespace eager;
  Value equal = compare_scalar("eq.Scalar", sum_all(mask));
  item(std::move(equal));
}

/// masking_utils.py, create_causal_mask and create_sliding_window_causal_mask for a mask without padding: empty where
/// attention can be told is_causal instead, else bool (sdpa) or additive (eager).
inline Value causal_mask(Context& c, const MaskShape& m, const Value& attention_mask) {
  if (c.fused()) return {};
  Value padding = eager::to(attention_mask, DType::boolean);
  if (c.plan.attention == AttentionKind::eager) return additive_mask(c, materialised_mask(c, m, padding));
  const bool window_matters = m.window && m.kv_len >= *m.window;
  if (c.plan.attention == AttentionKind::flash) {
    check_all_true(padding);
    return {};
  }
  if (!window_matters && (m.q_len == 1 || m.q_len == m.kv_len)) {
    check_all_true(padding);
    return {};
  }
  return materialised_mask(c, m, padding);
}

}  // namespace vlmest
