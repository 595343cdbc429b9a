// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string>

#include <vlmest/graph/eager/attention_backward.hpp>
#include <vlmest/graph/eager/dropout.hpp>
#include <vlmest/graph/eager/pad.hpp>
#include <vlmest/graph/eager/product.hpp>
#include <vlmest/library/attention.hpp>

/// torch.nn.functional.scaled_dot_product_attention (torch 2.11), by backend: what each allocates, in order.
namespace vlmest::eager {

/// A boolean mask becomes an additive one of q's type in its own shape (attention.cpp, convert_boolean_attn_mask).
inline Value float_mask(Value mask, DType t) {
  if (!mask || mask.dtype() != DType::boolean) return mask;
  Builder& b = mask.builder();
  Value zero = fill(b, "scalar_tensor", Shape{}, t);
  Value lowest = fill(b, "scalar_tensor", Shape{}, t);
  return where(std::move(mask), std::move(zero), std::move(lowest));
}

/// cuDNN's kernel: seed and offset on the device, the result in q's layout, scratch; sums where a backward or another
/// part of the keys asks for them. A split over the keys is joined by a second kernel.
inline FusedAttention cudnn_kernel(Attention op, const Value& q, const Value& k, const Value& v, const Value& mask,
                                   bool sums) {
  Builder& b = q.builder();
  const Bytes workspace = cudnn_workspace(op, b.gpu);
  if (op.q_len == 1 && workspace > Bytes{}) op.kernels = 2;
  const Shape s{op.batch, op.heads, op.q_len, op.v_dim};
  const TensorId seed = b.result(DType::int64, Shape{}, "philox_seed"),
                 offset = b.result(DType::int64, Shape{}, "philox_offset");
  const TensorId out = b.result(op.dtype, s, strides_like(q.tensor(), s), "attention");
  const TensorId lse = sums ? b.result(DType::fp32, {op.batch, op.heads, op.q_len, 1}, "logsumexp") : none;
  const std::array<TensorId, 4> ins{q.id(), k.id(), v.id(), mask ? mask.id() : none};
  const std::array<TensorId, 4> with_lse{out, lse, seed, offset};
  const std::array<TensorId, 3> without{out, seed, offset};
  b.emit(product("_scaled_dot_product_cudnn_attention"), op, ins, sums ? std::span<const TensorId>(with_lse) : without,
         {workspace});
  return {Value(b, out), sums ? Value(b, lse) : Value(), Value(b, seed), Value(b, offset)};
}

inline Value cudnn_attention(const Attention& op, Value q, Value k, Value v, Value mask) {
  const GradEdge eq = edge(q), ek = edge(k), ev = edge(v);
  const bool trains = eq || ek || ev;
  FusedAttention made = cudnn_kernel(op, q, k, v, mask, trains);
  if (!trains) return std::move(made.out);
  differentiable(made.out, "ScaledDotProductCudnnAttentionBackward0", {eq, ek, ev},
                 [op, sq = saved(q, true), sk = saved(k, true), sv = saved(v, true), sm = saved(mask, true),
                  kept = saved_attention(made)](Gradients& g) {
                   hand_on(g, cudnn_attention_backward(op, g.in[0], sq, sk, sv, sm, kept));
                 });
  return std::move(made.out);
}

/// Heads of a multiple of 8 channels, by copies.
inline void pad_heads(Value& q, Value& k, Value& v) {
  const std::int64_t d = q.size(3), padded = round_up(d, 8);
  if (padded == d) return;
  for (Value* x : {&q, &k, &v}) *x = pad(std::move(*x), -1, 0, padded - d);
}

/// Flash's kernel: [B, S, H, D] storage, or where heads were padded, which makes queries row-major, that of the queries
/// (flash_attn/flash_api.cpp, mha_fwd: empty_like(q)); a split over the keys keeps fp32 partial results while it runs.
/// Without sums these and the random state are scratch.
inline FusedAttention flash_kernel(const Attention& op, const Value& q, const Value& k, const Value& v, bool sums,
                                   bool padded = false) {
  Builder& b = q.builder();
  const std::int64_t n = flash_splits(op, b.gpu), wide = flash_head_size(op.head_dim);
  const Elements rows{checked_mul(checked_mul(op.batch, op.heads), op.q_len)};
  const Bytes lse = size_of(rows, DType::fp32);
  const Bytes lse_accum = n > 1 ? lse * n : Bytes{}, out_accum = n > 1 ? lse * n * wide : Bytes{};
  const TensorId out = padded ? b.result(op.dtype, q.shape(), strides_like(q.tensor(), q.shape()), "attention")
                              : sequence_major(b, op.dtype, op.batch, op.heads, op.q_len, op.head_dim);
  const std::array<TensorId, 3> ins{q.id(), k.id(), v.id()};
  if (!sums) {
    const std::array<TensorId, 1> outs{out};
    b.emit(product("_scaled_dot_product_flash_attention"), op, ins, outs,
           {lse, lse_accum, out_accum, Bytes(16), Bytes(8)});
    return {Value(b, out), {}, {}, {}};
  }
  const std::array<TensorId, 4> outs{out, b.result(DType::fp32, {op.batch, op.heads, op.q_len}, "logsumexp"),
                                     b.result(DType::int64, {2}, "rng_state"),
                                     b.result(DType::int64, Shape{}, "philox_offset")};
  b.emit(product("_scaled_dot_product_flash_attention"), op, ins, outs, {lse_accum, out_accum});
  return {Value(b, out), Value(b, outs[1]), Value(b, outs[2]), Value(b, outs[3])};
}

inline Value flash_backend(const Attention& asked, Value q, Value k, Value v) {
  Attention op = asked;
  const std::int64_t d = op.head_dim;
  pad_heads(q, k, v);
  op.head_dim = op.v_dim = q.size(3);
  const GradEdge eq = edge(q), ek = edge(k), ev = edge(v);
  const bool trains = eq || ek || ev;
  FusedAttention made = flash_kernel(op, q, k, v, trains, op.head_dim != d);
  if (trains)
    differentiable(made.out, "ScaledDotProductFlashAttentionBackward0", {eq, ek, ev},
                   [op, sq = saved(q, true), sk = saved(k, true), sv = saved(v, true), kept = saved_attention(made)](
                       Gradients& g) { hand_on(g, flash_attention_backward(op, g.in[0], sq, sk, sv, kept)); });
  return slice(std::move(made.out), 3, 0, d);
}

/// Memory-efficient: a mask whose rows do not start at multiples of eight elements is copied with padded rows; heads of
/// more than 128 channels need an fp32 accumulator.
inline Value efficient_attention(const Attention& op, Value q, Value k, Value v, Value mask) {
  Builder& b = q.builder();
  if (mask && mask.size(-1) % 8 != 0) {
    Shape s = mask.shape();
    s[s.rank() - 1] = round_up(s[-1], 8);
    const TensorId r = b.result(mask.dtype(), s, "constant_pad_nd");
    const Bytes n = size_of(numel(s), mask.dtype());
    const int kernels = 1 + (numel(mask.shape()).value() == mask.size(-1) ? copy_kernels(mask) : 1);  // as pad
    if (edge(mask)) {
      const std::int64_t width = mask.size(-1);
      mask = slice(pad(std::move(mask), -1, 0, s[-1] - width), -1, 0, width);
    } else {
      mask = emit1(b, "constant_pad_nd",
                   MemoryOp{.read = data_bytes(mask), .written = n + n, .dtype = op.dtype, .kernels = kernels}, r, {},
                   mask);
    }
  }
  const Elements result{checked_mul(checked_mul(op.batch, op.heads), checked_mul(op.q_len, op.v_dim))};
  const Bytes accum = is_half(op.dtype) && op.v_dim > 128 ? size_of(result, DType::fp32) : Bytes{};
  const TensorId out = sequence_major(b, op.dtype, op.batch, op.heads, op.q_len, op.v_dim);
  const GradEdge eq = edge(q), ek = edge(k), ev = edge(v), em = edge(mask);
  const bool trains = eq || ek || ev || em;
  // Kept only for a backward, which reads whole blocks of 32 rows.
  const TensorId lse = b.result(DType::fp32, {op.batch, op.heads, trains ? round_up(op.q_len, 32) : 0}, "logsumexp");
  const std::array<TensorId, 4> ins{q.id(), k.id(), v.id(), mask ? mask.id() : none};
  const std::array<TensorId, 2> outs{out, lse};
  b.emit(product("_scaled_dot_product_efficient_attention"), op, ins, outs, {accum});
  Value r(b, out);
  Value sums(b, lse);
  differentiable(r, "ScaledDotProductEfficientAttentionBackward0", {eq, ek, ev, em},
                 [op, sq = saved(q, trains), sk = saved(k, trains), sv = saved(v, trains), sm = saved(mask, trains),
                  kept = saved_result(r, trains), sl = saved(sums, trains)](Gradients& g) {
                   efficient_attention_backward(op, g, sq, sk, sv, sm, kept, sl);
                 });
  return r;
}

/// a times a number of C++, aten mul.Scalar.
inline Value scale(Value a) {
  const DType t = a.dtype();
  const GradEdge e = edge(a);
  Value r = pointwise("mul.Scalar", t, std::move(a));
  differentiable(r, "MulBackward1", {e}, [t](Gradients& g) { g.out[0] = pointwise("mul.Scalar", t, g.in[0]); });
  return r;
}

/// Math: everything in fp32, keys and values repeated for their groups where enable_gqa was asked for, else broadcast
/// (attention.cpp, _scaled_dot_product_attention_math); weights are dropped by an op of their own.
inline Value math_attention(const Attention& op, Value q, Value k, Value v, Value mask, bool drops,
                            bool broadcasts = false) {
  Builder& b = q.builder();
  const DType t = op.dtype;
  // The fp32 copies and what is scaled of them are variables, alive to the end.
  const Value query = to(std::move(q), DType::fp32);
  Value keys = to(std::move(k), DType::fp32), values = to(std::move(v), DType::fp32);
  const Value own_keys = keys, own_values = values;  // beside what is repeated for groups
  q = scale(query);
  if (op.causal) {
    Value triangle = fill(b, "ones", {op.q_len, op.kv_len}, DType::boolean);
    triangle = unary("tril", std::move(triangle));
    mask = float_mask(std::move(triangle), DType::fp32);
  }
  if (op.heads != op.kv_heads && !broadcasts) {
    auto repeat_heads = [&](Value& x) {
      const Shape wide{x.size(0), op.kv_heads, op.heads / op.kv_heads, x.size(2), x.size(3)};
      x = view(clone_contiguous(expand(unsqueeze(std::move(x), 2), wide)), {wide[0], op.heads, wide[3], wide[4]});
    };
    repeat_heads(keys);
    repeat_heads(values);
  }
  Value scores;
  {
    const Value scaled = scale(transpose(keys, -2, -1));
    scores = matmul(q, broadcasts ? expand(scaled, {-1, op.heads, -1, -1}) : scaled);
  }
  // Where a dispatch mode looks on, as a recorder's does, tensors count as subclasses, which are not added to in place.
  if (mask) scores = b.observed ? add(scores, mask) : add_(std::move(scores), mask);
  Value probs = safe_softmax(std::move(scores));
  if (drops) probs = native_dropout(std::move(probs));
  Value returned = to(probs, t);
  Value out = matmul(probs, broadcasts ? expand(values, {-1, op.heads, -1, -1}) : values);
  return to(std::move(out), t);
}

/// Of q[B, H, S, D], k[B, KV, T, D] and v[B, KV, T, Dv].
inline Attention attention_of(const Value& q, const Value& k, const Value& v, bool causal = false, Bytes mask = {}) {
  return {.batch = q.size(0),
          .heads = q.size(1),
          .kv_heads = k.size(1),
          .q_len = q.size(2),
          .kv_len = k.size(2),
          .head_dim = q.size(3),
          .v_dim = v.size(3),
          .causal = causal,
          .mask = mask,
          .dtype = q.dtype()};
}

/// Heads of queries over one head of keys and values without enable_gqa, which no fused kernel takes (sdp_utils.cpp,
/// check_batch_size_and_num_heads_dense).
inline Value broadcast_attention(Value q, Value k, Value v) {
  const AutocastCall call(CastPolicy::lower, q, k, v);
  const Attention op = attention_of(q, k, v);
  return math_attention(op, std::move(q), std::move(k), std::move(v), {}, false, true);
}

/// q, k and v[H, S, D] without a batch, which no fused kernel takes (sdp_utils_cpp.h, check_tensor_shapes), under a
/// mask that is given.
inline Value unbatched_attention(Value q, Value k, Value v, Value mask) {
  const AutocastCall call(CastPolicy::lower, q, k, v, mask);
  const Attention op{.batch = 1,
                     .heads = q.size(0),
                     .kv_heads = k.size(0),
                     .q_len = q.size(1),
                     .kv_len = k.size(1),
                     .head_dim = q.size(2),
                     .v_dim = v.size(2),
                     .dtype = q.dtype()};
  mask = float_mask(std::move(mask), op.dtype);
  return math_attention(op, std::move(q), std::move(k), std::move(v), std::move(mask), false);
}

/// The call as the choice of a backend sees it.
inline SdpaCall sdpa_call(const Value& q, const Value& k, const Value& v, const Value& mask, bool causal, bool drops) {
  const auto gaps = [](const Value& x) { return x.size(-1) != 1 && x.tensor().strides[-1] != 1; };
  return {.op = attention_of(q, k, v, causal, data_bytes(mask)),
          .gpu = q.builder().gpu,
          .masked = static_cast<bool>(mask),
          .gaps = gaps(q) || gaps(k) || gaps(v),
          .mask_gaps = mask && mask.tensor().strides[-1] != 1,
          .mask_trains = static_cast<bool>(edge(mask)),
          .mask_of_three = mask && mask.shape().rank() == 3,
          .enable_gqa = q.size(1) != k.size(1),
          .drops = drops};
}

/// q[B, H, S, D], k and v[B, Hkv, L, D], mask empty, boolean or additive; the result is [B, H, S, Dv] in the backend's
/// own layout. drops: dropout_p is above zero, which the fused kernels apply themselves. Throws Error where a fused
/// kernel would have to give the gradient of a mask that is broadcast.
inline Value scaled_dot_product_attention(Value q, Value k, Value v, Value mask, bool causal, bool drops = false) {
  const AutocastCall call(CastPolicy::lower, q, k, v, mask);
  const SdpaCall asked = sdpa_call(q, k, v, mask, causal, drops);
  Attention op = asked.op;
  op.backend = choose_backend(asked);
  if (asked.mask_trains && op.backend != AttentionBackend::math &&
      mask.shape() != Shape{op.batch, op.heads, op.q_len, op.kv_len})
    throw Error("training", "the gradient of an attention mask that is broadcast, from a fused kernel, is not modelled",
                "use plan.attention=eager");
  mask = float_mask(std::move(mask), op.dtype);
  switch (op.backend) {
    case AttentionBackend::cudnn: return cudnn_attention(op, q, k, v, mask);
    case AttentionBackend::flash: return flash_backend(op, q, k, v);
    case AttentionBackend::efficient: return efficient_attention(op, q, k, v, std::move(mask));
    case AttentionBackend::math: break;
  }
  return math_attention(op, q, k, v, mask, drops);
}

/// The same under sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION), which leaves torch no other choice. Throws Error where
/// that kernel does not take the call.
inline Value only_efficient_attention(Value q, Value k, Value v, Value mask) {
  const AutocastCall call(CastPolicy::lower, q, k, v, mask);
  const SdpaCall asked = sdpa_call(q, k, v, mask, false, false);
  Attention op = asked.op;
  op.backend = AttentionBackend::efficient;
  if (asked.gaps || !efficient_allows(asked))
    throw Error("attention",
                "the model's code asks for the memory-efficient kernel alone, which does not take heads of " +
                    std::to_string(op.head_dim) + " channels on this device",
                "heads of a multiple of 8 channels on a device that has it");
  mask = float_mask(std::move(mask), op.dtype);
  return efficient_attention(op, q, k, v, std::move(mask));
}

}  // namespace vlmest::eager
