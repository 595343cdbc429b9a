// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include <vlmest/nn/divided_sequence.hpp>
#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// Rotary position embedding with fp32 inverse frequencies (transformers keeps two copies of them as buffers).
struct Rope {
  ScopeId scope = 0;
  TensorId inv_freq = none;
  std::int64_t dim = 0;  ///< rotated channels of a head
};

inline Rope make_rope(Context& c, const char* name, std::int64_t dim) {
  Module m(c, name);
  Rope r{.scope = m.scope, .dim = dim};
  r.inv_freq = buffer(c, "inv_freq", {dim / 2}, DType::fp32);
  buffer(c, "original_inv_freq", {dim / 2}, DType::fp32);
  return r;
}

/// Of one type of layer, in the current scope: a pair of buffers for each type, which models make in alphabetical order
/// (modeling_gemma4.py, Gemma4TextRotaryEmbedding.__init__; modeling_step3p7.py, Step3p7RotaryEmbedding.__init__).
inline Rope make_rope_of_type(Context& c, bool slides, std::int64_t dim) {
  Rope r{.scope = c.b.scope(), .dim = dim};
  r.inv_freq = buffer(c, slides ? "sliding_attention_inv_freq" : "full_attention_inv_freq", {dim / 2}, DType::fp32);
  buffer(c, slides ? "sliding_attention_original_inv_freq" : "full_attention_original_inv_freq", {dim / 2},
         DType::fp32);
  return r;
}

struct CosSin {
  Value cos;
  Value sin;
  Value ids;  ///< the positions themselves, where attention reads them too
};

/// What a layer is called with as it finds it: fully_shard casts it to the type that the layer's weights are gathered
/// in (torch/distributed/fsdp/_fully_shard/_fsdp_state.py, FSDPState._pre_forward). The second forward of a
/// checkpointed layer, in which it casts nothing, is taken as the first.
inline CosSin as_called(Context& c, const CosSin& e) {
  if (!c.plan.param_dtype) return e;
  return {.cos = eager::to(e.cos, c.dtype()), .sin = eager::to(e.sin, c.dtype()), .ids = e.ids};
}

/// Positions that text models count where the caller gives none: int64[1, S]. Of a part of a sequence they are given.
inline Value text_positions(Context& c, std::int64_t tokens) {
  if (c.sequence && c.sequence->ran) return eager::unsqueeze(c.sequence->places, 0);
  Value p = eager::arange(c.b, tokens);
  return eager::unsqueeze(eager::add_scalar(p), 0);
}

/// modeling_llama.py, LlamaRotaryEmbedding.forward: positions[B, S] -> cos, sin[B, S, dim] in the activations' type.
/// `spread` lays the frequencies [B, S, dim / 2] out over the channels.
template <class Spread>
CosSin forward(Context& c, const Rope& r, const Value& positions, Spread&& spread) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const std::int64_t batch = positions.size(0);
  Value inv = expand(unsqueeze(unsqueeze(Value(c.b, r.inv_freq), 0), 2), {batch, -1, 1});
  Value pos = to(unsqueeze(positions, 1), DType::fp32);
  const Autocast off(c.b, std::nullopt);
  Value freqs = transpose(matmul(inv, pos), 1, 2);
  Value angles = spread(freqs);
  Value cosine = mul_scalar(eager::cos(angles));
  Value sine = mul_scalar(eager::sin(angles));
  CosSin out;
  out.cos = to(cosine, c.dtype());
  out.sin = to(sine, c.dtype());
  return out;
}
/// All frequencies, then all again.
inline CosSin forward(Context& c, const Rope& r, const Value& positions) {
  return forward(c, r, positions, [](const Value& freqs) { return eager::cat(freqs, freqs, -1); });
}

/// transformers 5.17 modeling_rope_utils.py, _compute_longrope_parameters: the factors come from the host.
inline Value longrope_frequencies(Context& c, const Rope& r) {
  using namespace eager;
  const Shape half{r.dim / 2};
  const Value factors = from_host(c.b, half, DType::fp32);
  Value steps = to(fill(c.b, "arange.start_step", half, DType::int64), DType::fp32);
  const Value exponents = div_scalar(std::move(steps));
  const Value stretched = mul(factors, scalar_pow(exponents));
  Value turns = pointwise("reciprocal", DType::fp32, stretched);
  return mul_scalar(std::move(turns));
}
/// transformers 5.17 modeling_rope_utils.py, longrope_frequency_update: which of two lists of frequencies is used, the
/// host decides from the largest position before they are. Those for more than the original length are computed in
/// every call (what is asked for under one name is kept under another) and take the buffer's place: the graph keeps the
/// buffer, which is as large.
inline void choose_frequencies(Context& c, const Rope& r, const Value& positions, bool beyond_original) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const Value length = add_scalar(reduce("max", DType::int64, Shape{}, positions));
  item(compare_scalar("gt.Scalar", length));
  if (beyond_original) longrope_frequencies(c, r);
}

/// transformers 5.17 modeling_rope_utils.py, dynamic_frequency_update: whether positions go beyond the length that the
/// frequencies are for, or back below the original one, the host decides from the largest of them.
inline void check_dynamic_length(Context& c, const Rope& r, const Value& positions) {
  using namespace eager;
  InScope in(c.b, r.scope);
  const Value length = add_scalar(reduce("max", DType::int64, Shape{}, positions));
  for (const char* side : {"gt.Scalar", "lt.Scalar"}) item(compare_scalar(side, length));
}

/// modeling_ministral3.py, get_llama_4_attn_scale: 1 + beta log(1 + floor(position / original length)) for each query,
/// fp32[1, 1, S, 1].
inline Value query_scale(const Value& positions) {
  using namespace eager;
  Value x = pointwise("div.Tensor", DType::fp32, positions);
  x = unary("floor", std::move(x));
  x = unary("log", add_scalar(std::move(x)));
  x = add_scalar(mul_scalar(std::move(x)));
  return unsqueeze(unsqueeze(std::move(x), 1), 3);
}
/// query_states * get_llama_4_attn_scale(…).to(query_states.dtype).
inline Value scaled_query(const Value& q, const Value& positions) {
  Value scale = eager::to(query_scale(positions), q.dtype());
  return eager::mul(q, std::move(scale));
}

/// repeat_interleave(2, -1): each entry of the last dimension twice in a row.
inline Value repeat_each(const Value& x) {
  using namespace eager;
  Shape pairs = x.shape(), joined = x.shape();
  pairs.insert(pairs.rank(), 2);
  joined[joined.rank() - 1] = checked_mul(x.size(-1), 2);
  return view(clone_contiguous(expand(unsqueeze(x, x.shape().rank()), pairs)), joined);
}

/// cat(-x2, x1) over the halves of the last dimension (modeling_llama.py, rotate_half).
inline Value rotate_half(Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  const std::int64_t d = x.size(-1);
  Value x1 = slice(x, -1, 0, d / 2);
  Value x2 = slice(x, -1, d / 2, d);
  Value negated = neg(x2);
  return cat(std::move(negated), x1, -1);
}

/// x * cos + rotate_half(x) * sin.
inline Value rotate(Value arg, const Value& cos, const Value& sin) {
  using namespace eager;
  Value x = std::move(arg);
  Value a = mul(x, cos);
  Value rotated = rotate_half(x);
  Value b = mul(std::move(rotated), sin);
  return add(std::move(a), std::move(b));
}

/// modeling_llama.py, apply_rotary_pos_emb: rebinds q and k [B, H, S, D]; `heads_dim` is where cos and sin lack the
/// dimension of the heads.
inline void apply_rope(Context& c, Value& q, Value& k, const CosSin& e, int heads_dim = 1) {
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    Value cos = eager::unsqueeze(e.cos, heads_dim), sin = eager::unsqueeze(e.sin, heads_dim);
    Value rotated_q = rotate(q, cos, sin);
    Value rotated_k = rotate(k, cos, sin);
    q = std::move(rotated_q);
    k = std::move(rotated_k);
  });
}

/// modeling_phi3.py, apply_rotary_pos_emb: the first channels of each head turn, the others are joined to them again,
/// where all turn those that do not are none.
inline void apply_partial_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  stacks::rotate(c, q, k, e.cos, e.sin, [&] {
    Value cos = unsqueeze(e.cos, 1), sin = unsqueeze(e.sin, 1);
    const std::int64_t turned = cos.size(-1), all = q.size(-1);
    const Value q_turn = slice(q, -1, 0, turned), q_pass = slice(q, -1, turned, all);
    const Value k_turn = slice(k, -1, 0, turned), k_pass = slice(k, -1, turned, all);
    Value rotated_q = cat(rotate(q_turn, cos, sin), q_pass, -1);
    Value rotated_k = cat(rotate(k_turn, cos, sin), k_pass, -1);
    q = std::move(rotated_q);
    k = std::move(rotated_k);
  });
}

/// modeling_qwen3_5.py, apply_rotary_pos_emb: the same, but queries and keys are joined to what does not turn when both
/// have turned.
inline void rotate_partly(Value& q, Value& k, const CosSin& e) {
  using namespace eager;
  const Value cos = unsqueeze(e.cos, 1), sin = unsqueeze(e.sin, 1);
  const std::int64_t turned = cos.size(-1), all = q.size(-1);
  const Value q_turn = slice(q, -1, 0, turned), q_pass = slice(q, -1, turned, all);
  const Value k_turn = slice(k, -1, 0, turned), k_pass = slice(k, -1, turned, all);
  Value rotated_q = rotate(q_turn, cos, sin);
  Value rotated_k = rotate(k_turn, cos, sin);
  rotated_q = cat(rotated_q, q_pass, -1);
  rotated_k = cat(rotated_k, k_pass, -1);
  q = std::move(rotated_q);
  k = std::move(rotated_k);
}

/// modeling_glm4v_moe.py and modeling_glmasr.py, apply_rotary_pos_emb: rotate_partly by the runtime's own kernel, where
/// it has one.
inline void apply_joint_partial_rope(Context& c, Value& q, Value& k, const CosSin& e) {
  stacks::rotate(c, q, k, e.cos, e.sin, [&] { rotate_partly(q, k, e); });
}

}  // namespace vlmest
