// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// transformers 5.17 modeling_attn_mask_utils.py, AttentionMaskConverter._make_causal_mask: [S, seen + S] in the
/// activations' type; `windowed`: what lies before a window is masked too, wherever the window begins.
inline Value phi3v_causal_mask(Context& c, std::int64_t tokens, std::int64_t seen, bool windowed) {
  using namespace eager;
  const DType t = c.dtype();
  Value mask = fill(c.b, "full", {tokens, tokens}, DType::fp32);
  const Value at = arange(c.b, tokens);
  {
    Value next = view(add_scalar(at), {tokens, 1});
    Value before = compare("lt.Tensor", at, std::move(next));
    mask = pointwise_("masked_fill_.Scalar", std::move(mask), std::move(before));
  }
  mask = to(mask, t);
  if (seen > 0) {
    Value zeros = fill(c.b, "zeros", {tokens, seen}, t);
    mask = cat(std::move(zeros), mask, -1);
  }
  if (windowed) {
    const Value context = pointwise("tril", DType::boolean, fill_like("ones_like", mask, DType::boolean));
    mask = pointwise_("masked_fill_.Scalar", std::move(mask), context);
  }
  return mask;
}

/// The same file, _prepare_4d_causal_attention_mask of padding[B, seen + S]: [B, 1, S, seen + S].
inline Value phi3v_mask(Context& c, const Value& padding, std::int64_t tokens, bool windowed) {
  using namespace eager;
  if (!c.stack().makes_masks) return {};
  const std::int64_t batch = padding.size(0), keys = padding.size(1);
  Value causal;
  if (tokens > 1 || windowed)
    causal = expand(unsqueeze(unsqueeze(phi3v_causal_mask(c, tokens, keys - tokens, windowed), 0), 0),
                    {batch, 1, tokens, keys});
  Value expanded;
  {
    const Value wide = to(expand(unsqueeze(unsqueeze(padding, 1), 1), {batch, 1, tokens, keys}), c.dtype());
    const Value inverted = pointwise("sub.Tensor", c.dtype(), wide);
    expanded = masked_fill(inverted, to(inverted, DType::boolean));
  }
  return causal ? masked_fill(causal, to(expanded, DType::boolean)) : expanded;
}

}  // namespace vlmest
