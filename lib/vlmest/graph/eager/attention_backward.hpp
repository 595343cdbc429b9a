// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include <vlmest/graph/eager/product.hpp>
#include <vlmest/library/attention.hpp>

/// The gradients of scaled_dot_product_attention (torch 2.11), by backend.
namespace vlmest::eager {

/// A fused result: [B, H, S, D] in the storage of a [B, S, H, D] tensor.
inline TensorId sequence_major(Builder& b, DType t, std::int64_t batch, std::int64_t heads, std::int64_t q_len,
                               std::int64_t d) {
  return b.result(t, {batch, heads, q_len, d}, {q_len * heads * d, d, heads * d, 1}, "attention");
}

/// What a gradient[B, H, S, D] takes that does not lie as [B, S, H, D] without gaps: a copy (attention_backward.cu,
/// grad_out.contiguous()).
inline Bytes sequence_major_copy(const Value& gradient) {
  Tensor t = gradient.tensor();
  std::swap(t.shape[1], t.shape[2]);
  std::swap(t.strides[1], t.strides[2]);
  return is_contiguous(t) ? Bytes{} : data_bytes(gradient);
}

/// What a fused kernel gives in training: its result, the logarithms of the sums of its softmax, and where its random
/// numbers began.
struct FusedAttention {
  Value out, lse, seed, offset;
};
inline FusedAttention saved_attention(const FusedAttention& made) {
  return {saved_result(made.out, true), saved(made.lse, true), saved(made.seed, true), saved(made.offset, true)};
}

/// Of q, k and v.
using AttentionGradients = std::array<Value, 3>;

/// Those that are wanted; the others go at once.
inline void hand_on(Gradients& g, AttentionGradients all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (g.wants(i)) g.out[i] = std::move(all[i]);
    all[i].reset();
  }
}

/// The backward of cuDNN's attention: gradients of q, k and v in their layouts; an fp32 accumulator of dq and row sums,
/// and for grouped queries dk and dv of every query head, are scratch (agrees with recorded peaks).
inline AttentionGradients cudnn_attention_backward(const Attention& op, const Value& gradient, const Value& q,
                                                   const Value& k, const Value& v, const Value& mask,
                                                   const FusedAttention& made) {
  Builder& b = q.builder();
  const auto like = [&](const Value& x, const char* name) {
    return b.result(op.dtype, x.shape(), strides_like(x.tensor(), x.shape()), name);
  };
  const std::array<TensorId, 3> outs{like(q, "dq"), like(k, "dk"), like(v, "dv")};
  const std::array<TensorId, 9> ins{gradient.id(),  q.id(),           k.id(),
                                    v.id(),         made.out.id(),    made.lse.id(),
                                    made.seed.id(), made.offset.id(), mask ? mask.id() : none};
  const std::int64_t rows = checked_mul(checked_mul(op.batch, op.heads), op.q_len);
  Bytes scratch = size_of(Elements(checked_mul(rows, op.head_dim)), DType::fp32) +
                  size_of(Elements(rows), DType::fp32) + Bytes(256);
  if (op.heads != op.kv_heads)
    scratch +=
        size_of(Elements(checked_mul(checked_mul(checked_mul(op.batch, op.heads), op.kv_len), op.head_dim + op.v_dim)),
                op.dtype);
  b.emit("_scaled_dot_product_cudnn_attention_backward", AttentionBackward{op}, ins, outs, {scratch});
  return {Value(b, outs[0]), Value(b, outs[1]), Value(b, outs[2])};
}

/// Flash: gradient and result are copied where they do not lie as [B, S, H, D]; the row sums and an fp32 accumulator of
/// dq in blocks of 128 queries are scratch, and for grouped queries dk and dv of every query head
/// (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd; agrees with recorded allocations).
inline AttentionGradients flash_attention_backward(const Attention& op, const Value& gradient, const Value& q,
                                                   const Value& k, const Value& v, const FusedAttention& made) {
  Builder& b = q.builder();
  const auto like = [&](const Value& x, const char* name) {
    return b.result(op.dtype, x.shape(), strides_like(x.tensor(), x.shape()), name);
  };
  const TensorId dq = like(q, "dq"), dk = like(k, "dk"), dv = like(v, "dv");
  const std::array<TensorId, 3> outs{dq, dk, dv};
  const std::array<TensorId, 7> ins{gradient.id(), q.id(),        k.id(),        v.id(),
                                    made.out.id(), made.lse.id(), made.seed.id()};
  const std::int64_t rows = checked_mul(checked_mul(op.batch, op.heads), round_up(op.q_len, 128));
  const Bytes sums = size_of(Elements(rows), DType::fp32);
  const std::int64_t keys = checked_mul(checked_mul(op.batch, op.heads), checked_mul(op.kv_len, op.head_dim));
  const Bytes expanded = op.heads == op.kv_heads ? Bytes{} : size_of(Elements(keys), op.dtype);
  b.emit("_scaled_dot_product_flash_attention_backward", AttentionBackward{op}, ins, outs,
         {sequence_major_copy(gradient), sequence_major_copy(made.out), sums, sums * flash_head_size(op.head_dim),
          expanded, expanded});
  return {Value(b, dq), Value(b, dk), Value(b, dv)};
}

/// Scratch of the memory-efficient kernel's backward: a row sum for each query, and for every tile of queries and
/// channels the fp32 sum of dq with a lock and a counter; half types with more than 128 channels also sum dk and dv
/// there, for as many blocks of 64 keys as run side by side (aten/src/ATen/native/transformers/cuda/mem_eff_attention/
/// kernel_backward.h, workspace_size; attention_backward.cu, num_splits_key: at most 200 over all heads). fp32 first
/// makes the row sums from a product of gradient and result (attention_backward.cu). Agrees with recorded allocations.
constexpr Bytes efficient_backward_scratch(const Attention& o) {
  const bool half = is_half(o.dtype);
  const std::int64_t heads = checked_mul(o.batch, o.heads), queries = o.head_dim > 64 ? 128 : 64;
  const std::int64_t channels = half && o.head_dim > 64 && o.head_dim <= 128 ? 128 : 64;
  const std::int64_t tiles =
      checked_mul(round_up(o.q_len, queries) / queries, round_up(o.head_dim, channels) / channels);
  const Bytes sums = size_of(Elements(checked_mul(heads, o.q_len)), DType::fp32);
  Bytes kernel = sums + Bytes(checked_mul(checked_mul(heads, tiles), 16 + queries * channels * 4));
  if (half && o.head_dim > 128) {
    const std::int64_t width = round_up(o.head_dim, queries) + round_up(o.v_dim, queries);
    const std::int64_t splits = std::min(round_up(o.kv_len, 64) / 64, std::max<std::int64_t>(200 / heads, 1));
    kernel += size_of(Elements(checked_mul(checked_mul(heads, splits * 64), width)), DType::fp32);
  }
  const Bytes before = half ? Bytes{} : sums * (2 + o.v_dim);
  return before > kernel ? before : kernel;
}
/// The gradient of a mask[B, H, S, L] from it: a part of rows of whole 16 elements (attention_backward.cu,
/// bias_requires_grad).
inline TensorId mask_gradient(Builder& b, const Attention& op) {
  const std::int64_t row = round_up(op.kv_len, 16), head = checked_mul(op.q_len, row);
  const std::int64_t batch = checked_mul(op.heads, head);
  const Shape s{op.batch, op.heads, op.q_len, op.kv_len};
  const TensorId r = b.result(op.dtype, s, {batch, head, row, 1}, "mask gradient");
  b.graph.tensors[static_cast<std::size_t>(r)].storage = Elements(checked_mul(op.batch, batch));
  return r;
}
inline void efficient_attention_backward(const Attention& op, Gradients& g, const Value& q, const Value& k,
                                         const Value& v, const Value& mask, const Value& out, const Value& lse) {
  Builder& b = q.builder();
  const auto like = [&](const Value& x) {
    return sequence_major(b, op.dtype, x.size(0), x.size(1), x.size(2), x.size(3));
  };
  const TensorId dq = like(q), dk = like(k), dv = like(v);
  const std::array<TensorId, 4> outs{dq, dk, dv, g.wants(3) ? mask_gradient(b, op) : none};
  const std::size_t results = g.wants(3) ? 4 : 3;
  const std::array<TensorId, 7> ins{g.in[0].id(), q.id(), k.id(), v.id(), out.id(), lse.id(), mask ? mask.id() : none};
  b.emit("_scaled_dot_product_efficient_attention_backward", AttentionBackward{op}, ins,
         std::span<const TensorId>(outs).first(results),
         {sequence_major_copy(g.in[0]), efficient_backward_scratch(op)});
  for (std::size_t i = 0; i < results; ++i) {
    Value gradient(b, outs[i]);
    if (g.wants(i)) g.out[i] = std::move(gradient);
  }
}

}  // namespace vlmest::eager
