// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/dropout.hpp>

namespace vlmest {

/// Keys or values repeated for the query heads that share them: a copy where there is more than one
/// (modeling_llama.py, repeat_kv).
inline Value repeat_kv(Value x, std::int64_t times) {
  if (times == 1) return x;
  const std::int64_t b = x.size(0), h = x.size(1), s = x.size(2), d = x.size(3);
  return eager::reshape(eager::expand(eager::unsqueeze(std::move(x), 2), {b, h, times, s, d}), {b, h * times, s, d});
}

/// q[B, H, S, D], k and v[B, Hkv, L, D].
struct AttentionArgs {
  Value q;
  Value k;
  Value v;
  Value mask;
  bool causal = false;       ///< the module's own flag; a mask or a single query switches it off
  bool dropout = false;      ///< weights are dropped in training mode; the other interfaces do it inside their kernel
  bool fp32_softmax = true;  ///< eager attention casts its scores up for the softmax
  bool softcap = false;  ///< scores are squashed by tanh (Gemma 2); eager attention alone does it in steps of its own
};

/// What the attention interface returns; eager attention's weights stay alive as long as the caller keeps them.
struct Attended {
  Value out;  ///< [B, S, H, D], row-major
  Value weights;
};

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
    weights = unary("tanh", weights);
    weights = mul_scalar(weights);
  }
  if (a.mask) weights = add(weights, a.mask);
  weights = a.fp32_softmax ? to(softmax(weights, DType::fp32), t) : softmax(weights);
  if (a.dropout) weights = dropout(c, weights);
  Value out = matmul(weights, values);
  Attended r;
  r.out = contiguous(transpose(out, 1, 2));
  r.weights = weights;
  return r;
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
  const bool causal = a.causal && !a.mask && a.q.size(2) > 1;
  Value out = scaled_dot_product_attention(a.q, keys, values, a.mask, causal,
                                           {c.plan.compute_capability, c.plan.multiprocessors});
  return contiguous(transpose(std::move(out), 1, 2));
}

/// integrations/flash_attention.py, get_target_dtype: under autocast fp32 queries are cast, and keys and values with
/// them.
inline void cast_for_flash(Value& q, Value& k, Value& v) {
  const AutocastState& autocast = q.builder().autocast;
  if (!autocast.enabled || q.dtype() != DType::fp32) return;
  for (Value* x : {&q, &k, &v}) *x = eager::to(std::move(*x), autocast.lower);
}

/// integrations/flash_attention.py, flash_attention_forward, on [B, S, H, D] views; masks without padding are dropped.
/// Throws Error for types that FlashAttention-2 does not take.
inline Value flash_attention(Context& c, const AttentionArgs& a) {
  using namespace eager;
  Value q = transpose(a.q, 1, 2), k = transpose(a.k, 1, 2), v = transpose(a.v, 1, 2);
  cast_for_flash(q, k, v);
  if (!c.fused() && !is_half(q.dtype()))
    throw Error("--attention", "FlashAttention-2 takes bf16 and fp16, not " + std::string(name(q.dtype())),
                "give --dtype bf16, or --attention sdpa");
  return flash_attn_func(q, k, v, a.causal, c.plan.multiprocessors);
}

/// The attention interface of the run.
inline Attended attend(Context& c, const AttentionArgs& a) {
  if (c.fused() || c.plan.attention == AttentionKind::flash) return {flash_attention(c, a), {}};
  if (c.plan.attention == AttentionKind::eager) return eager_attention(c, a);
  return {sdpa_attention(c, a), {}};
}

/// The run's choices for a model that has no version for torch's fused attention: what from_pretrained takes by
/// default is eager there (transformers modeling_utils.py, get_correct_attn_implementation).
inline Plan without_sdpa(const Plan& p) {
  Plan r = p;
  if (r.attention == AttentionKind::sdpa) r.attention = AttentionKind::eager;
  return r;
}
/// The same build under other choices, which outlive it.
inline Context with_plan(const Context& c, const Plan& plan) {
  return {c.b, plan, c.blocks, c.labels, c.adapters, c.input_gradients, c.quantization, c.loads, c.padded};
}

}  // namespace vlmest
