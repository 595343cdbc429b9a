// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/nn/rope.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// Cohere's layer norm: a weight, no bias, written out in fp32 (modeling_cohere.py, CohereLayerNorm). The weight spans
/// one dimension, or heads and channels where it norms q and k.
struct CohereNorm {
  ScopeId scope = 0;
  TensorId weight = none;
};

inline CohereNorm make_cohere_norm(Context& c, const char* name, const Shape& shape) {
  Module m(c, name);
  return {.scope = m.scope, .weight = parameter(c, "weight", shape)};
}

/// CohereLayerNorm.forward: the centred input is computed twice.
inline Value forward(Context& c, const CohereNorm& n, Value arg) {
  using namespace eager;
  InScope in(c.b, n.scope);
  Value weight(c.b, n.weight);
  return stacks::norm(c, Norm::Kind::layer_norm, arg, weight, [&] {
    const DType t = arg.dtype();
    Value x = to(arg, DType::fp32);
    Value average = mean(x, -1, true);
    Value variance = mean(pow_scalar(sub(x, average)), -1, true);
    Value centred = sub(x, average);
    Value scale = rsqrt(add_scalar(variance));
    x = mul(std::move(centred), std::move(scale));
    Value gain = to(std::move(weight), DType::fp32);
    x = mul(std::move(gain), x);
    return to(x, t);
  });
}

/// CohereRotaryEmbedding.forward: each frequency twice in a row, not the list twice.
inline CosSin paired_rope(Context& c, const Rope& r, const Value& positions) {
  return forward(c, r, positions, repeat_each);
}

/// x * cos + (neighbouring pairs turned) * sin: even and odd channels are stacked and flattened
/// (modeling_cohere.py, rotate_half).
inline Value rotate_pairs(const Value& x, const Value& cos, const Value& sin) {
  using namespace eager;
  const std::int64_t d = x.size(-1);
  Value straight = mul(x, cos);
  Value turned;
  {
    Value even = slice(x, -1, 0, d, 2), odd = slice(x, -1, 1, d, 2);
    std::array<Value, 2> pair{neg(odd), even};
    turned = flatten(stack(pair, -1), -2, -1);
  }
  Value across = mul(std::move(turned), sin);
  return add(std::move(straight), std::move(across));
}

/// modeling_cohere.py, apply_rotary_pos_emb: in fp32, then cast back. Rebinds q and k [B, H, S, D].
inline void apply_paired_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    const DType t = q.dtype();
    Value q_wide = to(q, DType::fp32);
    Value k_wide = to(k, DType::fp32);
    Value cos = unsqueeze(e.cos, 1), sin = unsqueeze(e.sin, 1);
    Value rotated_q = rotate_pairs(q_wide, cos, sin);
    Value rotated_k = rotate_pairs(k_wide, cos, sin);
    Value new_q = to(rotated_q, t);
    Value new_k = to(rotated_k, t);
    q = std::move(new_q);
    k = std::move(new_k);
  });
}

}  // namespace vlmest
