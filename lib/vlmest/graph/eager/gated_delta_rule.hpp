// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <vlmest/graph/eager/assign.hpp>
#include <vlmest/graph/eager/reduce.hpp>
#include <vlmest/library/gpu.hpp>
#include <vlmest/op/delta_rule.hpp>

/// The gated delta rule as the package fla runs it: flash-linear-attention 0.5.2, fla/ops/gated_delta_rule/chunk.py and
/// fused_recurrent.py, whose functions and variables are followed one by one. Its Triton kernels write into tensors
/// that torch made before them.
namespace vlmest::eager {

/// q and k[B, S, heads, key_dim], v[B, S, heads, value_dim], decay (in log space, fp32) and beta[B, S, heads].
struct DeltaRuleTensors {
  Value q, k, v, decay, beta;
};

/// out[B, S, heads, value_dim] in q's type; the state[B, heads, key_dim, value_dim] after the last token in fp32, or
/// nothing.
struct DeltaRuleResult {
  Value out, state;
};

namespace fla {

/// The kernel of this kind over the tensors' sizes.
inline DeltaRule rule(DeltaRule::Kind kind, const Value& k, const Value& v) {
  return {.kind = kind,
          .batch = k.size(0),
          .tokens = k.size(1),
          .heads = v.size(2),
          .key_dim = k.size(3),
          .value_dim = v.size(3),
          .dtype = k.dtype()};
}

/// One kernel that reads and writes tensors that are there.
inline void launch(const char* kernel, Op op, std::initializer_list<const Value*> reads,
                   std::initializer_list<const Value*> writes) {
  std::array<TensorId, 12> from{}, into{};
  std::size_t n = 0, m = 0;
  for (const Value* v : reads)
    if (*v) from.at(n++) = v->id();
  for (const Value* v : writes)
    if (*v) into.at(m++) = v->id();
  Builder& b = (*writes.begin())->builder();
  b.emit({kernel, AtenTrait::outside}, std::move(op), std::span(from).first(n), std::span(into).first(m));
}

/// A kernel whose time is its bytes.
inline void launch_moving(const char* kernel, std::initializer_list<const Value*> reads,
                          std::initializer_list<const Value*> writes) {
  MemoryOp op{.dtype = (*writes.begin())->dtype(), .access = Access::packaged};
  for (const Value* v : reads) op.read += data_bytes(*v);
  for (const Value* v : writes) op.written += data_bytes(*v);
  launch(kernel, op, reads, writes);
}

/// tensor.new_empty, and torch.empty of a type of its own.
inline Value fresh(const Value& like, const Shape& s) { return empty(like.builder(), "new_empty", s, like.dtype()); }
inline Value floats(const Value& like, const Shape& s) {
  return empty(like.builder(), "empty.memory_format", s, DType::fp32);
}

/// Rows of unit length, and 1 / length of each (fla/modules/l2norm.py).
struct Unit {
  Value y, rstd;
};
inline Unit l2norm_fwd(const Value& x) {
  const Shape whole = x.shape(), rows{x.size(0), x.size(1), x.size(2)};
  const Value flat = view(x, {-1, x.size(3)});
  Value y = empty_like(flat);
  Value rstd = floats(x, {flat.size(0)});
  launch_moving("l2norm_fwd_kernel", {&flat}, {&y, &rstd});
  return {view(std::move(y), whole), view(std::move(rstd), rows)};
}
inline Value l2norm_bwd(const Unit& unit, const Value& gradient) {
  const Shape whole = unit.y.shape();
  const Value y = view(unit.y, {-1, unit.y.size(3)}), dy = view(gradient, {-1, unit.y.size(3)});
  Value dx = empty_like(y);
  launch_moving("l2norm_bwd_kernel", {&y, &unit.rstd, &dy}, {&dx});
  return view(std::move(dx), whole);
}

/// Sums of the decay within chunks, from either end (fla/ops/utils/cumsum.py).
inline Value chunk_local_cumsum(const Value& g) {
  Value sums = empty_like(g, DType::fp32);
  launch_moving("chunk_local_cumsum_scalar_kernel", {&g}, {&sums});
  return sums;
}

/// Keys and values times the inverse of their chunk's system (wy_fast.py).
struct WyPair {
  Value w, u;
};
inline WyPair recompute_w_u(const Value& k, const Value& v, const Value& beta, const Value& a, const Value& g) {
  WyPair r;
  r.w = fresh(k, {k.size(0), k.size(1), v.size(2), k.size(3)});
  r.u = empty_like(v);
  launch("recompute_w_u_fwd_kernel", rule(DeltaRule::Kind::values, k, v), {&k, &v, &beta, &a, &g}, {&r.w, &r.u});
  return r;
}

/// The state before each chunk[B, chunks, heads, key_dim, value_dim], the values that enter it, and the last state
/// where it is kept (fla/ops/common/chunk_delta_h.py).
struct ChunkStates {
  Value h, v_new, last;
};
inline Shape states_shape(const DeltaRule& o) { return {o.batch, chunks(o), o.heads, o.key_dim, o.value_dim}; }
inline ChunkStates states(const Value& k, const WyPair& wy, const Value& g, bool keeps_state) {
  const DeltaRule op = rule(DeltaRule::Kind::states, k, wy.u);
  ChunkStates r;
  r.h = fresh(k, states_shape(op));
  if (keeps_state) r.last = fill(k.builder(), "new_zeros", {op.batch, op.heads, op.key_dim, op.value_dim}, DType::fp32);
  r.v_new = empty_like(wy.u);
  launch("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", op, {&k, &wy.u, &wy.w, &g}, {&r.v_new, &r.h, &r.last});
  return r;
}

/// What the forward keeps for the backward: normed queries and keys, the decay's sums, the chunks' inverses.
struct Kept {
  Unit q, k;
  Value v, sums, beta, a;
};

/// ChunkGatedDeltaRuleFunction.forward on contiguous arguments.
inline DeltaRuleResult forward(const DeltaRuleTensors& x, bool keeps_state, Kept& kept) {
  kept.q = l2norm_fwd(x.q);
  kept.k = l2norm_fwd(x.k);
  kept.v = x.v;
  kept.beta = x.beta;
  kept.sums = chunk_local_cumsum(x.decay);
  const Value &q = kept.q.y, &k = kept.k.y, &v = x.v;
  kept.a = fill(k.builder(), "zeros", {k.size(0), k.size(1), v.size(2), delta_rule_chunk}, k.dtype());
  launch("chunk_gated_delta_rule_fwd_kkt_solve_kernel", rule(DeltaRule::Kind::solve, k, v), {&k, &kept.sums, &x.beta},
         {&kept.a});
  const WyPair wy = recompute_w_u(k, v, x.beta, kept.a, kept.sums);
  ChunkStates s = states(k, wy, kept.sums, keeps_state);
  Value o = empty_like(v);
  launch("chunk_fwd_kernel_o", rule(DeltaRule::Kind::outputs, k, v), {&q, &k, &s.v_new, &s.h, &kept.sums}, {&o});
  return {std::move(o), std::move(s.last)};
}

/// Parts of a head's keys whose share of the decay's gradient is summed apart: tiles by the shared memory of a block
/// (chunk_o.py, chunk_bwd_dqkwg; fla/utils/_device.py, check_shared_mem).
inline std::int64_t key_parts(std::int64_t key_dim, const Gpu& gpu) {
  const std::int64_t shared = block_shared_memory(gpu.sm),
                     most = shared >= block_shared_memory(90)   ? 128
                            : shared >= block_shared_memory(89) ? 64
                                                                : 32,
                     whole = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(key_dim))),
                     tile = std::min(std::max<std::int64_t>(whole, 16), most);
  return (key_dim + tile - 1) / tile;
}

/// chunk_gated_delta_rule_bwd: gradients of normed queries and keys, values, the decay, beta.
inline DeltaRuleTensors gradients(const Kept& x, const Value& gradient) {
  const Value &q = x.q.y, &k = x.k.y, &v = x.v, &g = x.sums, &beta = x.beta;
  const WyPair wy = recompute_w_u(k, v, beta, x.a, g);
  const ChunkStates s = states(k, wy, g, false);
  Value dv = empty_like(gradient);
  launch("chunk_bwd_kernel_dv_local", rule(DeltaRule::Kind::local_gradients, k, v), {&q, &k, &g, &gradient}, {&dv});
  const Value dh = fresh(q, states_shape(rule(DeltaRule::Kind::states, k, v)));
  {
    Value sums = empty_like(dv);
    launch("chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64", rule(DeltaRule::Kind::state_gradients, k, v),
           {&q, &k, &wy.w, &g, &gradient, &dv}, {&sums, &dh});
    dv = std::move(sums);
  }
  const Shape keys{k.size(0), k.size(1), v.size(2), k.size(3)};
  DeltaRuleTensors d;
  d.q = fresh(q, keys);
  d.k = fresh(k, keys);
  Shape parts = g.shape();
  parts.insert(0, key_parts(k.size(3), k.builder().gpu));
  Value dg = floats(g, parts);
  const Value dw = empty_like(wy.w);
  launch("chunk_bwd_kernel_dqkwg", rule(DeltaRule::Kind::gradients, k, v),
         {&q, &k, &s.v_new, &wy.w, &g, &s.h, &gradient, &dh, &dv}, {&d.q, &d.k, &dw, &dg});
  dg = sum(std::move(dg), 0, false);
  const Value dk = fresh(k, keys);
  d.v = empty_like(v);
  const Value of_decay = empty_like(g);
  d.beta = empty_like(beta);
  launch("prepare_wy_repr_bwd_kernel", rule(DeltaRule::Kind::wy_gradients, k, v), {&k, &v, &beta, &g, &x.a, &dw, &dv},
         {&dk, &d.v, &d.beta, &of_decay});
  dv.reset();
  d.k = add_(std::move(d.k), dk);
  dg = add_(std::move(dg), of_decay);
  d.decay = chunk_local_cumsum(dg);
  return d;
}

/// Arguments that the package's kernels can read (fla/utils, input_guard): those that are not row-major are copied, and
/// both live until it returns.
inline DeltaRuleTensors guarded(const DeltaRuleTensors& x) {
  return {contiguous(detached(x.q)), contiguous(detached(x.k)), contiguous(detached(x.v)),
          contiguous(detached(x.decay)), contiguous(detached(x.beta))};
}

}  // namespace fla

/// fla's chunk_gated_delta_rule from no state, with queries and keys that it brings to unit length.
inline DeltaRuleResult chunk_gated_delta_rule(const DeltaRuleTensors& x, bool keeps_state) {
  const GradEdge eq = edge(x.q), ek = edge(x.k), ev = edge(x.v), eg = edge(x.decay), eb = edge(x.beta);
  const bool trains = eq || ek || ev || eg || eb;
  const DeltaRuleTensors in = fla::guarded(x);
  fla::Kept made;
  DeltaRuleResult r = fla::forward(in, keeps_state, made);
  if (!trains) return r;
  const fla::Kept kept{.q = {saved(made.q.y, true), saved(made.q.rstd, true)},
                       .k = {saved(made.k.y, true), saved(made.k.rstd, true)},
                       .v = saved(made.v, true),
                       .sums = saved(made.sums, true),
                       .beta = saved(made.beta, true),
                       .a = saved(made.a, true)};
  differentiable(r.out, "ChunkGatedDeltaRuleFunctionBackward", {eq, ek, ev, eg, eb}, [kept](Gradients& g) {
    const Value gradient = contiguous(g.in[0]);
    DeltaRuleTensors d = fla::gradients(kept, gradient);
    d.q = fla::l2norm_bwd(kept.q, d.q);
    d.k = fla::l2norm_bwd(kept.k, d.k);
    const std::array<Value*, 5> made_of{&d.q, &d.k, &d.v, &d.decay, &d.beta};
    for (std::size_t i = 0; i < made_of.size(); ++i)
      if (g.wants(i)) g.out[i] = std::move(*made_of[i]);
  });
  return r;
}

/// fla's fused_recurrent_gated_delta_rule over `initial`, without gradients: as many tokens as there are, one after the
/// other in one kernel.
inline DeltaRuleResult fused_recurrent_gated_delta_rule(const DeltaRuleTensors& x, const Value& initial) {
  const DeltaRuleTensors in = fla::guarded(x);
  const Value state = contiguous(initial);
  DeltaRuleResult r;
  r.out = empty_like(in.v);
  r.state = empty(in.q.builder(), "new_empty", {in.v.size(0), in.v.size(2), in.k.size(3), in.v.size(3)}, DType::fp32);
  fla::launch("fused_recurrent_gated_delta_rule_fwd_kernel", fla::rule(DeltaRule::Kind::step, in.k, in.v),
              {&in.q, &in.k, &in.v, &in.decay, &in.beta, &state}, {&r.out, &r.state});
  return r;
}

}  // namespace vlmest::eager
