// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/nn/loss.hpp>

namespace vlmest {

/// modeling_kimi_vl.py, KimiVLForConditionalGeneration.forward, a loss of its own: the positions that the mask leaves,
/// all but the last, are copied out of logits[B, S, V] and compared with the next token in the logits' own type. A
/// fused loss takes its place. Throws Error for the chunked one, which has no logits to copy from.
inline Value kimi_vl_loss(Context& c, const Value& logits, const Value& labels, const Value& mask) {
  using namespace eager;
  if (loss_kind(c) == Loss::chunked)
    throw Error("plan.loss", "the chunked loss leaves out that this model copies the logits that its mask leaves",
                "give plan.loss=unfused or fused");
  if (loss_kind(c) == Loss::fused) return causal_lm_loss(c, logits, labels);
  const std::int64_t tokens = logits.size(1), rows = checked_mul(logits.size(0), tokens - 1);
  const Value attended = slice(mask, 1, 1, tokens);
  const auto left = [&](const Value& of) {
    Value where = compare_scalar("ne.Scalar", attended);
    return masked_index(of, std::move(where), rows);
  };
  Value shift_logits = left(slice(logits, 1, 0, tokens - 1));
  Value shift_labels = left(slice(labels, 1, 1, tokens));
  Value x = view(shift_logits, {-1, logits.size(2)});
  const Value target = view(shift_labels, {-1});
  const AutocastCall call(CastPolicy::fp32, x);
  return cross_entropy(x, target);
}

}  // namespace vlmest
