// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/mask.hpp>

/// masking_utils.py, create_bidirectional_mask.
namespace vlmest {

/// Of real[B, L] (bool), some of which is false: what is padding is seen by nothing.
inline Value padding_mask(Context& c, const Value& real) {
  using namespace eager;
  const std::int64_t tokens = real.size(1);
  const MaskShape m{.batch = real.size(0), .q_len = tokens, .kv_len = tokens};
  const auto whole = [&] {
    const MaskGrid g = mask_grid(c, m, false);
    auto everything = [&] { return compare_scalar("ge.Scalar", view(g.query, g.column)); };
    auto is_real = [&] { return padding_function(g, real); };
    return whole_mask(g, and_masks(c, g, everything, is_real));
  };
  if (c.plan.attention != AttentionKind::eager) return whole();
  return additive_mask(c, whole());
}

/// Of a mask[B, L] of any type: nothing where none is padding, which the host asks. Throws Error for FlashAttention
/// over padding, which is taken out of queries, keys and values there.
inline Value bidirectional_mask(Context& c, const Value& mask, bool padded) {
  using namespace eager;
  if (!c.stack().makes_masks) return {};
  const Value real = to(mask, DType::boolean);
  item(reduce("all", DType::boolean, Shape{}, real));
  if (!padded) return {};
  if (c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "FlashAttention over clips with padding, which it takes out, is not modelled",
                "give plan.attention=sdpa");
  return padding_mask(c, real);
}

}  // namespace vlmest
