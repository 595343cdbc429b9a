// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include <vlmest/graph/eager/data.hpp>
#include <vlmest/graph/eager/pad.hpp>
#include <vlmest/library/attention.hpp>

/// The package flash-attn 2 (version 2.8.3: flash_attn/flash_attn_interface.py and csrc/flash_attn/flash_api.cpp):
/// FlashAttention-2, arXiv:2307.08691.
namespace vlmest::eager {

/// maybe_contiguous: only gaps within a head make a copy.
inline Value flash_operand(Value x) { return x.tensor().strides[-1] == 1 ? x : clone_contiguous(std::move(x)); }

/// What the autograd functions pad and keep: head sizes become multiples of 8, by copies.
inline Value flash_padded(Value x, std::int64_t d) {
  const std::int64_t more = round_up(d, 8) - d;
  return more == 0 ? x : pad(std::move(x), -1, 0, more);
}

/// What FlashAttnFunc and FlashAttnVarlenFunc save.
struct FlashSaved {
  Value q, k, v, out, lse, state;
  Value boundaries;  ///< int32[segments + 1]; of packed sequences
};

/// What both make of their operands before the kernel runs, outside of autograd: heads padded to a multiple of 8
/// channels, then rows without gaps.
struct FlashOperands {
  std::array<GradEdge, 3> edges;
  bool trains;
  Value wide_q, wide_k, wide_v, q, k, v;

  FlashOperands(const Value& q_, const Value& k_, const Value& v_, std::int64_t head_size)
      : edges{edge(q_), edge(k_), edge(v_)},
        trains(edges[0] || edges[1] || edges[2]),
        wide_q(flash_padded(detached(q_), head_size)),
        wide_k(flash_padded(detached(k_), head_size)),
        wide_v(flash_padded(detached(v_), head_size)),
        q(flash_operand(wide_q)),
        k(flash_operand(wide_k)),
        v(flash_operand(wide_v)) {}
};

/// mha_bwd and mha_varlen_bwd: gradients in the operands' layouts; row sums, an fp32 accumulator of dq and, for grouped
/// queries, dk and dv of every query head live while it runs.
inline void flash_attn_backward(std::span<const Attention> calls, std::int64_t head_size, std::int64_t accumulated_rows,
                                Gradients& g, const FlashSaved& s) {
  Builder& b = s.q.builder();
  const Attention& op = calls.front();
  const auto like = [&](const Value& x, const char* name) {
    const TensorId r = b.result(op.dtype, x.shape(), strides_like(x.tensor(), x.shape()), name);
    b.emit("empty_like", MemoryOp{.dtype = op.dtype, .kernels = 0}, {}, std::array<TensorId, 1>{r});
    return Value(b, r);
  };
  const Value dq = like(s.q, "dq");
  const Value dk = like(s.k, "dk");
  const Value dv = like(s.v, "dv");
  Value d_out = flash_padded(g.in[0], head_size);
  d_out = flash_operand(std::move(d_out));
  const Elements rows(checked_mul(accumulated_rows, op.heads));
  const bool grouped = op.heads != op.kv_heads;
  const std::int64_t keys = numel(s.k.shape()).value() / op.kv_heads;
  const Bytes expanded = grouped ? size_of(Elements(checked_mul(keys, op.heads)), op.dtype) : Bytes{};
  const TensorId sums = b.result(DType::fp32, {rows.value()}, "softmax_d");
  const Bytes accumulator = size_of(rows, DType::fp32) * flash_head_size(op.head_dim);
  const std::array<TensorId, 8> ins{d_out.id(), s.q.id(),   s.k.id(),     s.v.id(),
                                    s.out.id(), s.lse.id(), s.state.id(), s.boundaries ? s.boundaries.id() : none};
  const std::array<TensorId, 4> outs{sums, dq.id(), dk.id(), dv.id()};
  const char* name = s.q.shape().rank() == 3 ? "_flash_attn_varlen_backward" : "_flash_attn_backward";
  const Value kept_sums(b, sums);
  for (bool first = true; const Attention& call : calls) {
    if (first)
      b.emit(name, AttentionBackward{call}, ins, outs, {accumulator, expanded, expanded});
    else
      b.emit(name, AttentionBackward{call}, ins, std::span(outs).subspan(1));
    first = false;
  }
  if (g.wants(0)) g.out[0] = slice(dq, -1, 0, head_size);
  if (g.wants(1)) g.out[1] = slice(dk, -1, 0, head_size);
  if (g.wants(2)) g.out[2] = slice(dv, -1, 0, head_size);
}

/// Records the call's derivative on `result`, a view of s.out.
inline void flash_differentiable(const Value& result, const char* name, std::array<GradEdge, 3> edges,
                                 std::vector<Attention> calls, std::int64_t head_size, std::int64_t accumulated_rows,
                                 FlashSaved s) {
  differentiable(result, name, {edges[0], edges[1], edges[2]},
                 [calls = std::move(calls), head_size, accumulated_rows, s = std::move(s)](Gradients& g) {
                   flash_attn_backward(calls, head_size, accumulated_rows, g, s);
                 });
}

/// flash_attn_func: q[B, S, H, D], k and v[B, L, Hkv, D] to [B, S, H, D]. A split over the keys keeps fp32 partial
/// results while it runs (flash_api.cpp, set_params_splitkv).
inline Value flash_attn_func(Value q, Value k, Value v, bool causal) {
  Builder& b = q.builder();
  const std::int64_t d = q.size(3);
  Attention op{.batch = q.size(0),
               .heads = q.size(2),
               .kv_heads = k.size(2),
               .q_len = q.size(1),
               .kv_len = k.size(1),
               .head_dim = round_up(d, 8),
               .v_dim = round_up(d, 8),
               .causal = causal && q.size(1) > 1,
               .dtype = q.dtype(),
               .backend = AttentionBackend::flash,
               .kv_dtype = k.dtype()};
  const FlashOperands in(q, k, v, d);
  const Elements rows(checked_mul(checked_mul(op.batch, op.heads), op.q_len));
  const std::int64_t n = flash_splits(op, q.builder().gpu);
  const Bytes lse_parts = n > 1 ? size_of(rows, DType::fp32) * n : Bytes{};
  const Bytes out_parts = lse_parts * flash_head_size(op.head_dim);
  const Shape shape{op.batch, op.q_len, op.heads, op.v_dim};
  const std::array<TensorId, 3> outs{b.result(op.dtype, shape, strides_like(in.q.tensor(), shape), "attention"),
                                     b.result(DType::fp32, {op.batch, op.heads, op.q_len}, "logsumexp"),
                                     b.result(DType::int64, {2}, "rng_state")};
  const std::array<TensorId, 3> ins{in.q.id(), in.k.id(), in.v.id()};
  b.emit(product("_flash_attn_forward"), op, ins, outs, {lse_parts, out_parts});
  const Value out(b, outs[0]), lse(b, outs[1]), state(b, outs[2]);
  Value result = slice(out, 3, 0, d);
  FlashSaved s{saved(in.wide_q, in.trains),
               saved(in.wide_k, in.trains),
               saved(in.wide_v, in.trains),
               saved_result(out, in.trains),
               saved(lse, in.trains),
               saved(state, in.trains),
               {}};
  // mha_bwd: rows in blocks of 128 queries.
  flash_differentiable(result, "FlashAttnFuncBackward", in.edges, {op}, d,
                       checked_mul(op.batch, round_up(op.q_len, 128)), std::move(s));
  return result;
}

/// flash_attn_varlen_func: sequences of these lengths one after the other, q, k and v[tokens, heads, D], each attending
/// to itself. One kernel; its cost is written as one node for the sequences that share a length, of which the first
/// allocates.
inline Value flash_attn_varlen_func(Value q, Value k, Value v, const Value& boundaries,
                                    std::span<const std::int64_t> lengths) {
  Builder& b = q.builder();
  std::map<std::int64_t, std::int64_t> counts;
  for (auto n : lengths) ++counts[n];
  const std::int64_t tokens = q.size(0), heads = q.size(1), d = q.size(2);
  const DType t = q.dtype();
  std::vector<Attention> calls;
  for (const auto& [length, count] : counts)
    calls.push_back({.batch = count,
                     .heads = heads,
                     .kv_heads = k.size(1),
                     .q_len = length,
                     .kv_len = length,
                     .head_dim = round_up(d, 8),
                     .v_dim = round_up(d, 8),
                     .dtype = t,
                     .backend = AttentionBackend::flash});
  for (std::size_t i = 1; i < calls.size(); ++i) calls[i].kernels = 0;
  const FlashOperands in(q, k, v, d);
  const Shape shape{tokens, heads, round_up(d, 8)};
  const std::array<TensorId, 3> outs{b.result(t, shape, strides_like(in.q.tensor(), shape), "attention"),
                                     b.result(DType::fp32, {heads, tokens}, "logsumexp"),
                                     b.result(DType::int64, {2}, "rng_state")};
  const std::array<TensorId, 4> ins{in.q.id(), in.k.id(), in.v.id(), boundaries ? boundaries.id() : none};
  for (bool first = true; const Attention& call : calls) {
    b.emit(product("_flash_attn_varlen_forward"), call, ins, std::span(outs).first(first ? 3 : 1));
    first = false;
  }
  const Value out(b, outs[0]), lse(b, outs[1]), state(b, outs[2]);
  Value result = slice(out, 2, 0, d);
  FlashSaved s{saved(in.wide_q, in.trains),  saved(in.wide_k, in.trains), saved(in.wide_v, in.trains),
               saved_result(out, in.trains), saved(lse, in.trains),       saved(state, in.trains),
               saved(boundaries, in.trains)};
  // mha_varlen_bwd: sequences stand at least 128 rows apart.
  const auto apart = checked_add(tokens, checked_mul(128, static_cast<std::int64_t>(lengths.size())));
  flash_differentiable(result, "FlashAttnVarlenFuncBackward", in.edges, std::move(calls), d, apart, std::move(s));
  return result;
}

}  // namespace vlmest::eager
