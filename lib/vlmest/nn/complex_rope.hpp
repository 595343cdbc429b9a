// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/nn/rope.hpp>

/// Rotary positions as complex numbers, which turn neighbouring channels of a head (Llama 4, MoonViT).
namespace vlmest {

/// modeling_llama4.py, Llama4TextRotaryEmbedding.forward: positions[B, S] -> complex64[B, S, dim / 2].
inline Value complex_angles(Context& c, const Rope& r, const Value& positions) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const std::int64_t batch = positions.size(0);
  const Value inv = expand(unsqueeze(unsqueeze(Value(c.b, r.inv_freq), 0), 2), {batch, -1, 1});
  const Value pos = to(unsqueeze(positions, 1), DType::fp32);
  const Autocast off(c.b, std::nullopt);
  const Value freqs = transpose(matmul(inv, pos), 1, 2);
  Value lengths = fill_like("ones_like", freqs);
  Value turns = polar(std::move(lengths), freqs);
  turns = mul_scalar(turns);
  return turns;
}

/// A tensor whose neighbouring channels are complex numbers: [.., D] -> complex64[.., D / 2].
inline Value paired_channels(const Value& x) {
  using namespace eager;
  Shape pairs = x.shape();
  pairs[pairs.rank() - 1] /= 2;
  pairs.push_back(2);
  return view_as_complex(reshape(to(x, DType::fp32), pairs));
}

/// modeling_llama4.py, apply_rotary_emb and vision_apply_rotary_emb: rebinds q and k [B, S, H, D]; turns: complex64[B
/// or 1, S, 1, D / 2]. Kimi-VL's apply_rope is the same without the batch.
inline void turn_pairs(Context& c, Value& q, Value& k, const Value& turns) {
  using namespace eager;
  // The real and the imaginary parts are what cosines and sines are elsewhere.
  const Value part = real_part(turns);
  stacks::rotate(c, q, k, part, part, [&] {
    const Value q_pairs = paired_channels(q);
    const Value k_pairs = paired_channels(k);
    const Value q_turned = flatten(view_as_real(mul(q_pairs, turns)), -2, -1);
    const Value k_turned = flatten(view_as_real(mul(k_pairs, turns)), -2, -1);
    Value q_out = to(q_turned, q.dtype());
    Value k_out = to(k_turned, k.dtype());
    q = std::move(q_out);
    k = std::move(k_out);
  });
}

}  // namespace vlmest
