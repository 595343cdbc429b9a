// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/attention_args.hpp>
#include <vlmest/nn/divided_sequence.hpp>

namespace vlmest::stacks::transformers {

/// modeling_llama.py, eager_attention_forward: scores, scaled scores, masked scores, fp32 softmax, cast, product.
inline Attended eager_attention(Context& c, const AttentionArgs& a) {
  using namespace eager;
  const DType t = a.q.dtype();
  const std::int64_t groups = a.q.size(1) / a.k.size(1);
  Value keys = repeat_kv(a.k, groups);
  Value values = repeat_kv(a.v, groups);
  Value weights = mul_scalar(matmul(a.q, transpose(keys, 2, 3)));
  if (a.softcap) {  // modeling_gemma2.py, eager_attention_forward
    weights = div_scalar(weights);
    weights = unary(functions::tanh, weights);
    weights = mul_scalar(weights);
  }
  if (a.bias) weights = add(weights, a.bias);  // modeling_t5.py, eager_attention_forward
  if (a.mask) weights = add(weights, a.mask);
  weights = a.fp32_softmax ? to(softmax(weights, DType::fp32), t) : softmax(weights);
  if (a.dropout) weights = dropout(c, weights);
  Value out = matmul(weights, values);
  Attended r;
  r.out = contiguous(transpose(out, 1, 2));
  r.weights = weights;
  return r;
}

/// integrations/sdpa_attention.py, create_position_bias_mask: mask and bias become one additive mask in the bias's
/// layout.
inline Value position_bias_mask(Context& c, const AttentionArgs& a, bool causal) {
  using namespace eager;
  const auto lowest = [&] { return fill(c.b, "scalar_tensor", Shape{}, a.bias.dtype()); };
  if (a.mask && a.mask.dtype() != DType::boolean) return add(a.bias, a.mask);
  if (a.mask) return where(a.mask, a.bias, lowest());
  if (!causal) return a.bias;
  const std::int64_t queries = a.q.size(2), keys = a.k.size(2);
  Value row = unsqueeze(arange(c.b, queries), 1);
  Value column = unsqueeze(arange(c.b, keys), 0);
  Value visible = compare("ge.Tensor", std::move(row), std::move(column));
  visible = view(std::move(visible), {1, 1, queries, keys});
  return where(visible, a.bias, lowest());
}

/// integrations/sdpa_attention.py, sdpa_attention_forward.
inline Value sdpa_attention(Context& c, const AttentionArgs& a) {
  using namespace eager;
  const std::int64_t groups = a.q.size(1) / a.k.size(1);
  Value keys = a.k, values = a.v;
  // enable_gqa is asked for only without a mask and with equal head sizes up to 256.
  const bool gqa = groups > 1 && !a.mask && a.k.size(3) == a.v.size(3) && a.k.size(3) <= 256;
  if (groups > 1 && !gqa) {
    keys = repeat_kv(std::move(keys), groups);
    values = repeat_kv(std::move(values), groups);
  }
  if (in_part(c)) {
    if (!a.causal || a.mask || a.bias) refuse_part(c, "masks of other kinds");
    Value own = ring_attention(a.q, keys, values, c.sequence->at, a.dropout && c.plan.dropout);
    return contiguous(transpose(std::move(own), 1, 2));
  }
  const bool causal = a.causal && !a.mask && a.q.size(2) > 1;
  const Value mask = a.bias ? position_bias_mask(c, a, causal) : a.mask;
  Value out = scaled_dot_product_attention(a.q, keys, values, mask, causal && !a.bias, a.dropout && c.plan.dropout);
  return contiguous(transpose(std::move(out), 1, 2));
}

/// integrations/sdpa_attention.py and its like: what attn_implementation names.
inline Attended attend(Context& c, const AttentionArgs& a) {
  switch (c.plan.attention) {
    case AttentionKind::flash: return {flash_attention(c, a), {}};
    case AttentionKind::eager: return eager_attention(c, a);
    case AttentionKind::sdpa: break;
  }
  return {sdpa_attention(c, a), {}};
}

/// modeling_gpt_oss.py, eager_attention_forward. sinks[H].
inline Attended eager_sink_attention(Context& c, const AttentionArgs& a, const Value& sinks) {
  using namespace eager;
  const std::int64_t groups = a.q.size(1) / a.k.size(1);
  const Value keys = repeat_kv(a.k, groups), values = repeat_kv(a.v, groups);
  Value weights = mul_scalar(matmul(a.q, transpose(keys, 2, 3)));
  if (a.mask) weights = add(weights, a.mask);
  const Value wide = expand(reshape(sinks, {1, -1, 1, 1}), {a.q.size(0), a.q.size(1), a.q.size(2), 1});
  Value logits = cat(weights, wide, -1);
  Value largest = max_values(logits);
  logits = sub(logits, std::move(largest));
  const Value probabilities = softmax(logits, logits.dtype());
  const Value scores = slice(probabilities, -1, 0, keys.size(2));
  weights = a.dropout ? dropout(c, scores) : scores;
  weights = to(weights, values.dtype());
  const Value out = matmul(weights, values);
  Attended r;
  r.out = contiguous(transpose(out, 1, 2));
  r.weights = weights;
  return r;
}

/// Eager attention, for a plan that has been through without_sdpa. Throws Error for FlashAttention-2, whose kernels
/// know no sinks (GptOssPreTrainedModel, _compatible_flash_implementations).
inline Attended attend_with_sinks(Context& c, const AttentionArgs& a, const Value& sinks) {
  refuse_part(c, "attention sinks");
  if (c.plan.attention == AttentionKind::flash)
    throw Error("plan.attention", "FlashAttention-2 has no attention sinks, which this language model needs",
                "give plan.attention=eager, which transformers takes by default");
  return eager_sink_attention(c, a, sinks);
}

}  // namespace vlmest::stacks::transformers
