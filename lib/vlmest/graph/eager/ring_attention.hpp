// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/attention.hpp>
#include <vlmest/graph/eager/collective.hpp>

/// Attention of sequences that GPUs divide: keys and values go round, and each rank joins what its queries get from
/// each part (Liu et al., Ring Attention, arXiv:2310.01889; torch 2.11, torch/distributed/tensor/experimental/
/// _context_parallel/_attention.py, whose functions and variables are followed one by one). Ranks hold the head and the
/// tail of what is left of a sequence, so that all have as much to do (_load_balancer.py, _HeadTailLoadBalancer), and
/// keys and values are gathered at once (set_rotate_method, "allgather", the default).
namespace vlmest::eager {

/// This rank among those that a sequence is divided among.
struct RingRank {
  int ranks = 1;
  int rank = 0;
};

namespace ring {

/// tensor.chunk(2, dim=2)[i] of [B, H, S, D].
inline Value half(const Value& v, int i) {
  const std::int64_t n = v.size(2) / 2;
  return slice(v, 2, i * n, (i + 1) * n);
}

/// torch.cat([key.flatten(), value.flatten()]).
inline Value joined(const Value& key, const Value& value) {
  std::array<Value, 2> both{flatten(key, 0, -1), flatten(value, 0, -1)};
  return cat(both, 0);
}
/// Both again, as views.
inline void take_apart(const Value& both, Value& key, Value& value) {
  const Shape k = key.shape(), v = value.shape();
  const std::int64_t n = numel(k).value();
  key = view(slice(both, 0, 0, n), k);
  value = view(slice(both, 0, n, both.size(0)), v);
}

/// _partial_update: one half replaced, or added to in place, and both put together.
inline Value with_half(const Value& whole, Value fresh, int i, bool adds) {
  std::array<Value, 2> parts{half(whole, 0), half(whole, 1)};
  Value& part = parts[static_cast<std::size_t>(i)];
  part = adds ? add_(std::move(part), std::move(fresh)) : std::move(fresh);
  return cat(parts, 2);
}

/// _AllGatherRotater: one collective, before the first part's attention; what it sends lives until it is waited for.
struct Gathered {
  RingRank at;
  Value sent, all;

  void exchange(Value both) {
    if (all) return;
    sent = both;
    all = all_gather_first(std::move(both), at.ranks);
  }
  /// The i-th rank's before this one.
  Value next(int i) {
    sent.reset();
    const std::int64_t n = all.size(0) / at.ranks, from = (at.rank - i + at.ranks) % at.ranks;
    return slice(all, 0, from * n, (from + 1) * n);
  }
};

/// The attention of some queries over some keys.
struct Kernel {
  Attention op;

  Attention of(const Value& q, const Value& k, bool causal) const {
    Attention r = op;
    r.q_len = q.size(2);
    r.kv_len = k.size(2);
    r.causal = causal;
    return r;
  }
  FusedAttention operator()(const Value& q, const Value& k, const Value& v, bool causal) const {
    return op.backend == AttentionBackend::cudnn ? cudnn_kernel(of(q, k, causal), q, k, v, {}, true)
                                                 : flash_kernel(of(q, k, causal), q, k, v, true);
  }
  AttentionGradients backward(const Value& gradient, const Value& q, const Value& k, const Value& v,
                              const FusedAttention& made, bool causal) const {
    return op.backend == AttentionBackend::cudnn
               ? cudnn_attention_backward(of(q, k, causal), gradient, q, k, v, {}, made)
               : flash_attention_backward(of(q, k, causal), gradient, q, k, v, made);
  }
};

/// Which queries meet which keys of the i-th rank before: causally all of its own, then all queries the head of those
/// that come earlier, and the tail of the queries all of those that come later.
struct Step {
  bool own, head_of_keys, tail_of_queries;
  Step(RingRank at, int i) : own(i == 0), head_of_keys(i > 0 && i <= at.rank), tail_of_queries(i > at.rank) {}
  Value queries(const Value& v) const { return tail_of_queries ? half(v, 1) : v; }
  Value keys(const Value& v) const { return head_of_keys ? half(v, 0) : v; }
};

/// _SDPAMerger, in fp32: results of parts weighted by their sums.
struct Merger {
  Value out, lse;

  void step(const FusedAttention& part, bool tail) {
    const Value block_out = to(part.out, DType::fp32);
    const Value block_lse = part.lse.shape().rank() < block_out.shape().rank() ? unsqueeze(part.lse, -1) : part.lse;
    if (!lse) {
      lse = block_lse;
      out = block_out;
      return;
    }
    Value l = tail ? half(lse, 1) : lse, o = tail ? half(out, 1) : out;
    Value weight = unary(functions::sigmoid, sub(block_lse, l));
    Value difference = sub(o, block_out);
    Value moved = mul(std::move(weight), std::move(difference));
    o = sub(std::move(o), std::move(moved));
    Value decay = unary("log_sigmoid_forward", sub(l, block_lse));
    l = sub(std::move(l), std::move(decay));
    lse = tail ? with_half(lse, l, 1, false) : l;
    out = tail ? with_half(out, o, 1, false) : o;
  }
};

/// _templated_ring_attention: the result in the queries' type, the sums, and where the last part's random numbers
/// began.
inline FusedAttention forward(const Kernel& kernel, RingRank at, const Value& query, Value key, Value value) {
  const DType t = query.dtype();
  key = contiguous(std::move(key));
  value = contiguous(std::move(value));
  Gathered rotater{at, {}, {}};
  Merger merger;
  FusedAttention part;
  for (int i = 0; i < at.ranks; ++i) {
    if (i > 0) take_apart(rotater.next(i), key, value);
    if (i < at.ranks - 1) rotater.exchange(joined(key, value));
    const Step step(at, i);
    part = kernel(step.queries(query), step.keys(key), step.keys(value), step.own);
    merger.step(part, step.tail_of_queries);
  }
  const bool squeezed = part.lse.shape().rank() < merger.lse.shape().rank();
  FusedAttention r{to(merger.out, t), squeezed ? squeeze(merger.lse, -1) : merger.lse, part.seed, part.offset};
  merger.out.reset();
  return r;
}

/// _templated_ring_attention_backward. Gradients of keys and values go round the other way, in fp32; at the end each
/// rank has its own.
inline AttentionGradients backward(const Kernel& kernel, RingRank at, const Value& gradient, const Value& query,
                                   Value key, Value value, const FusedAttention& made) {
  const DType t = query.dtype();
  Value dq = zeros_like(query, DType::fp32), dk = zeros_like(key, DType::fp32), dv = zeros_like(value, DType::fp32);
  key = contiguous(std::move(key));
  value = contiguous(std::move(value));
  Gathered rotater{at, {}, {}};
  Value next_kv, next_gradients, received;  // received: what the rank before has sent
  Value q, k, v, lse;                       // variables of the loop's body stay to the next turn
  AttentionGradients part;
  for (int i = 0; i < at.ranks; ++i) {
    if (i > 0) take_apart(rotater.next(i), key, value);
    if (i < at.ranks - 1) {
      next_kv = joined(key, value);
      rotater.exchange(next_kv);
    }
    const Step step(at, i);
    lse = step.tail_of_queries ? contiguous(half(made.lse, 1)) : made.lse;
    q = step.queries(query);
    k = step.keys(key);
    v = step.keys(value);
    const FusedAttention of_part{step.queries(made.out), lse, made.seed, made.offset};
    part = kernel.backward(step.queries(gradient), q, k, v, of_part, step.own);
    if (!step.own) {
      next_gradients = received;
      take_apart(next_gradients, dk, dv);
    }
    if (step.head_of_keys) {
      dk = with_half(dk, part[1], 0, true);
      dv = with_half(dv, part[2], 0, true);
    } else {
      dk = add_(std::move(dk), part[1]);
      dv = add_(std::move(dv), part[2]);
    }
    next_gradients = joined(dk, dv);
    received = permute_tensor(next_gradients, at.ranks);
    dq = step.tail_of_queries ? with_half(dq, part[0], 1, true) : add_(std::move(dq), part[0]);
  }
  dq = to(dq, t);
  next_gradients = to(received, t);
  take_apart(next_gradients, dk, dv);
  return {std::move(dq), std::move(dk), std::move(dv)};
}

}  // namespace ring

/// The causal attention of this rank's part of a sequence over all of it: q[B, H, S, D], k and v[B, Hkv, S, D] of its
/// own. Throws Error where torch takes a kernel that is not modelled so.
inline Value ring_attention(Value q, Value k, Value v, RingRank at, bool drops) {
  const AutocastCall call(CastPolicy::lower, q, k, v);
  const SdpaCall asked = sdpa_call(q, k, v, {}, true, drops);
  ring::Kernel kernel{asked.op};
  kernel.op.backend = choose_backend(asked);
  if (kernel.op.backend != AttentionBackend::cudnn && kernel.op.backend != AttentionBackend::flash)
    throw Error("layout.mesh",
                "context parallelism is modelled with the kernels of cuDNN and FlashAttention, which " +
                    std::string(name(kernel.op.dtype)) + " heads of " + std::to_string(kernel.op.head_dim) +
                    " channels do not get on this GPU",
                "give plan.dtype=bf16, or leave cp out");
  const std::int64_t d = kernel.op.head_dim;
  if (kernel.op.backend == AttentionBackend::flash) {
    pad_heads(q, k, v);
    kernel.op.head_dim = kernel.op.v_dim = q.size(3);
  }
  const GradEdge eq = edge(q), ek = edge(k), ev = edge(v);
  const bool trains = eq || ek || ev;
  FusedAttention made = ring::forward(kernel, at, detached(q), detached(k), detached(v));
  if (trains)
    differentiable(
        made.out,
        kernel.op.backend == AttentionBackend::cudnn ? "ScaledDotProductCudnnAttentionBackward0"
                                                     : "ScaledDotProductFlashAttentionBackward0",
        {eq, ek, ev},
        [kernel, at, sq = saved(q, true), sk = saved(k, true), sv = saved(v, true), kept = saved_attention(made)](
            Gradients& g) { hand_on(g, ring::backward(kernel, at, g.in[0], sq, sk, sv, kept)); });
  return slice(std::move(made.out), 3, 0, d);
}

}  // namespace vlmest::eager
