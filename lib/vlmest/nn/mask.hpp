// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/mask_function.hpp>

namespace vlmest {

/// The causal (and sliding-window, or chunked) boolean mask with padding, written out by broadcasting: bool[B, 1, Q,
/// L]. `left`: int64[B], padding ahead of each sequence, of a chunked one.
inline Value materialised_mask(Context& c, const MaskShape& m, const Value& padding, const Value& left = {}) {
  const MaskGrid g = mask_grid(c, m, false);
  auto causal = [&] { return causal_function(g); };
  auto window = [&] { return m.chunked ? chunk_function(g, left) : window_function(g); };
  auto inside = [&] { return m.window ? and_masks(c, g, window, causal) : causal(); };
  auto real = [&] { return padding_function(g, padding); };
  if (padding) return whole_mask(g, and_masks(c, g, inside, real));
  return whole_mask(g, inside());
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

/// masking_utils.py, _ignore_causal_mask_sdpa: true where attention can be told is_causal instead, which padding rules
/// out. A padding mask that is longer than the keys of a sliding layer is first cut to them.
inline bool causal_mask_is_ignored(Context& c, const MaskShape& m, const Value& padding) {
  using namespace eager;
  Value mask = padding, at;
  if (mask.size(1) > m.kv_len) {
    at = arange(c.b, m.kv_len);
    at = add_scalar(at);
    Shape s = mask.shape();
    s[1] = m.kv_len;
    mask = gather_rows("index.Tensor", mask, at, s);
  }
  if (m.window && m.kv_len >= *m.window) return false;
  if (m.q_len != 1 && m.q_len != m.kv_len) return false;
  check_all_true(mask);
  // Over an empty cache the queries' own part is asked for once more: a static cache's rest could be all there is.
  if (c.padded && m.q_len == m.kv_len) check_all_true(mask);
  return !c.padded;
}

/// FlashAttention over padding leaves it out of queries, keys and values first (modeling_flash_attention_utils.py,
/// _upad_input).
inline void refuse_unpadding(const Context& c) {
  if (c.padded)
    throw Error("plan.attention",
                "FlashAttention over sequences of several lengths, which unpads them, is not modelled",
                "give plan.seq, to which text fills every sequence, or plan.attention=sdpa");
}

/// masking_utils.py, create_causal_mask, create_sliding_window_causal_mask and create_chunked_causal_mask: empty where
/// attention can be told is_causal instead, else bool (sdpa) or additive (eager).
inline Value causal_mask(Context& c, const MaskShape& m, const Value& attention_mask) {
  if (m.window || m.chunked) refuse_part(c, "windows");
  if (!c.stack().makes_masks) return {};
  Value padding = eager::to(attention_mask, DType::boolean);
  const Value left = m.chunked ? left_padding(padding) : Value();
  if (c.plan.attention == AttentionKind::eager) return additive_mask(c, materialised_mask(c, m, padding, left));
  if (c.plan.attention == AttentionKind::flash) {
    refuse_unpadding(c);
    Value kept = eager::slice(padding, 1, -m.kv_len, padding.size(1));
    eager::item(eager::reduce("all", DType::boolean, Shape{}, std::move(kept)));
    return {};
  }
  if (causal_mask_is_ignored(c, m, padding)) return {};
  return materialised_mask(c, m, padding, left);
}

/// masking_utils.py, create_recurrent_attention_mask: the padding mask itself where it holds zeros, which the host asks
/// unless a single token is decoded; else nothing.
inline Value recurrent_mask(Context& c, const Value& attention_mask, std::int64_t tokens) {
  using namespace eager;
  if (tokens == 1 || !c.stack().makes_masks) return {};
  item(reduce("all", DType::boolean, Shape{}, compare_scalar("eq.Scalar", attention_mask)));
  return c.padded ? contiguous(slice(attention_mask, 1, attention_mask.size(1) - tokens, attention_mask.size(1)))
                  : Value();
}

/// masking_utils.py, create_bidirectional_mask over real bool[B, L], by as many queries, or by `queries` of a sequence
/// of their own: nothing where no position is padding, which the host asks.
inline Value bidirectional_mask(Context& c, const Value& real, bool padded,
                                std::optional<std::int64_t> queries = std::nullopt) {
  using namespace eager;
  item(reduce("all", DType::boolean, Shape{}, real));
  if (!padded) return {};
  const std::int64_t tokens = real.size(1);
  const MaskShape m{.batch = real.size(0), .q_len = queries.value_or(tokens), .kv_len = tokens};
  const auto whole = [&] {
    const MaskGrid g = mask_grid(c, m, false);
    auto everything = [&] { return compare_scalar("ge.Scalar", view(g.query, g.column)); };
    auto is_real = [&] { return padding_function(g, real); };
    return whole_mask(g, and_masks(c, g, everything, is_real));
  };
  if (c.plan.attention != AttentionKind::eager) return whole();
  return additive_mask(c, whole());
}

}  // namespace vlmest
