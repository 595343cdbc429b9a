// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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
  Value bias{};          ///< of positions, [1, H, S, L]: added to the scaled scores
};

/// What the attention interface returns; eager attention's weights stay alive as long as the caller keeps them.
struct Attended {
  Value out;  ///< [B, S, H, D], row-major
  Value weights;
};

/// integrations/flash_attention.py, get_target_dtype: under autocast fp32 queries are cast, and keys and values with
/// them.
inline void cast_for_flash(Value& q, Value& k, Value& v) {
  const AutocastState& autocast = q.builder().autocast;
  if (!autocast.enabled || q.dtype() != DType::fp32) return;
  for (Value* x : {&q, &k, &v}) *x = eager::to(std::move(*x), autocast.lower);
}

/// integrations/flash_attention.py, flash_attention_forward, on [B, S, H, D] views; masks without padding are dropped.
/// Throws Error for types that FlashAttention-2 does not take, where that is what runs.
inline Value flash_attention(Context& c, const AttentionArgs& a) {
  using namespace eager;
  Value q = transpose(a.q, 1, 2), k = transpose(a.k, 1, 2), v = transpose(a.v, 1, 2);
  cast_for_flash(q, k, v);
  if (c.stack().flash_attention_2 && !is_half(q.dtype()))
    throw Error("plan.attention", "FlashAttention-2 takes bf16 and fp16, not " + std::string(name(q.dtype())),
                "give plan.dtype=bf16, or plan.attention=sdpa");
  return flash_attn_func(q, k, v, a.causal);
}

}  // namespace vlmest
