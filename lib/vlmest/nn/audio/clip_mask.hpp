// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/mask.hpp>

namespace vlmest {

/// masking_utils.py, create_bidirectional_mask over clips' mask[B, L] of any type: nothing where none is padding, which
/// the host asks. Throws Error for FlashAttention over padding, which is taken out of queries, keys and values there.
inline Value clip_mask(Context& c, const Value& mask, bool padded) {
  if (!c.stack().makes_masks) return {};
  if (padded && c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "FlashAttention over clips with padding, which it takes out, is not modelled",
                "give plan.attention=sdpa");
  return bidirectional_mask(c, eager::to(mask, DType::boolean), padded);
}

}  // namespace vlmest
