// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention_args.hpp>

namespace vlmest {

/// The run's choices for a model that has no version for torch's fused attention: what from_pretrained takes by
/// default is eager there (transformers modeling_utils.py, get_correct_attn_implementation).
inline Plan without_sdpa(const Plan& p) {
  Plan r = p;
  if (r.attention == AttentionKind::sdpa) r.attention = AttentionKind::eager;
  return r;
}
/// The same build under other choices, which outlive it.
inline Context with_plan(const Context& c, const Plan& plan) {
  return {c.b,        plan,          c.runtime, c.blocks, c.labels,  c.adapters, c.input_gradients, c.quantization,
          c.sharding, c.routed_rows, c.loads,   c.padded, c.sequence};
}

}  // namespace vlmest
