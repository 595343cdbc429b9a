// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <vlmest/graph/eager/fused.hpp>
#include <vlmest/graph/eager/routing.hpp>

/// A mixture of experts in the kernels of an idealised stack.
namespace vlmest::eager {

/// Where each token goes, and with what share.
struct FusedRoute {
  Value shares;   ///< fp32[tokens, k], of sum 1
  Value order;    ///< int32[tokens k]: rows sorted by expert
  Value offsets;  ///< int32[experts]
};

/// One kernel over the router's logits. A softmax over the chosen logits alone: its backward needs the shares and where
/// they stand, and fills the other logits' gradients with zeros.
inline FusedRoute fused_route(Value logits, std::int64_t k) {
  Builder& b = logits.builder();
  const std::int64_t tokens = logits.size(0), rows = checked_mul(tokens, k);
  const DType t = logits.dtype();
  const Bytes chosen = size_of(Elements(rows), DType::int32), shares = size_of(Elements(rows), DType::fp32);
  const std::array<TensorId, 3> routed{b.result(DType::fp32, {tokens, k}, "shares"),
                                       b.result(DType::int32, {rows}, "order"),
                                       b.result(DType::int32, {logits.size(1)}, "offsets")};
  const std::array<TensorId, 1> from{logits.id()};
  b.emit("route", MemoryOp{.read = data_bytes(logits), .written = chosen + shares, .dtype = t}, from, routed);
  FusedRoute r;
  r.shares = Value(b, routed[0]);
  r.order = Value(b, routed[1]);
  r.offsets = Value(b, routed[2]);
  const GradEdge e = edge(logits);
  const bool trains = static_cast<bool>(e);
  differentiable(
      r.shares, "RouteBackward", {e},
      [kept = saved_result(r.shares, trains), order = saved(r.order, trains), whole = e.shape, t](Gradients& g) {
        Builder& at = kept.builder();
        const std::array<TensorId, 3> ins{g.in[0].id(), kept.id(), order.id()};
        const std::array<TensorId, 1> outs{at.result(t, whole, "logits gradient")};
        const Bytes n = data_bytes(kept);
        at.emit("route_backward",
                MemoryOp{.read = n * 2 + data_bytes(order), .written = size_of(numel(whole), t), .dtype = t}, ins,
                outs);
        g.out[0] = Value(at, outs[0]);
      });
  return r;
}

/// What the experts' backward works on.
struct FusedExpertsSaved {
  Value x, gate_up, down, inner, shares, order;
  std::int64_t active = 1;
};

/// Biases of experts, added where their product is written; empty where they have none.
struct ExpertBiases {
  Value up;    ///< [experts, 2 inner]
  Value down;  ///< [experts, hidden]
};

/// The gradient of one of them: the rows that went through each expert, added up.
inline Value bias_gradient(const Value& rows, const Value& order, const Shape& s) {
  Builder& b = rows.builder();
  const DType t = rows.dtype();
  const std::array<TensorId, 2> ins{rows.id(), order.id()};
  const std::array<TensorId, 1> outs{b.result(t, s, "bias gradient")};
  b.emit("experts_bias", MemoryOp{.read = data_bytes(rows), .written = size_of(numel(s), t), .dtype = t}, ins, outs);
  return Value(b, outs[0]);
}

/// One grouped product of the backward, without its derivative. Matrices of experts that got no row are zeros.
inline Value experts_product(const char* name, GroupedMatmul op, const Shape& result, const Value& a, const Value& c,
                             const Value& order) {
  Builder& b = a.builder();
  const std::array<TensorId, 3> ins{a.id(), c.id(), order.id()};
  Value r;
  if (op.per_group) {
    r = fill(b, "zeros_like", result, op.dtype);
    b.emit(name, op, ins, std::array<TensorId, 1>{r.id()});
    return r;
  }
  const std::array<TensorId, 1> outs{b.result(op.dtype, result, name)};
  b.emit(name, op, ins, outs);
  return Value(b, outs[0]);
}

/// fused_moe.py, LigerFusedMoEFunction.backward: neither the gathered rows nor the activations nor the experts' results
/// were kept. The product with the second matrices also goes through the gate, weighs the activations and gives the
/// shares' gradients.
inline void fused_experts_backward(Gradients& g, const FusedExpertsSaved& s) {
  Builder& b = s.x.builder();
  const DType t = s.x.dtype();
  const std::int64_t tokens = s.x.size(0), hidden = s.x.size(1), inner = s.down.size(2), experts = s.down.size(0);
  const std::int64_t k = s.shares.size(1), rows = checked_mul(tokens, k);
  const auto product = [&](std::int64_t n, std::int64_t from, bool per_group) {
    return GroupedMatmul{
        .rows = rows, .n = n, .k = from, .groups = experts, .active = s.active, .per_group = per_group, .dtype = t};
  };
  const std::array<TensorId, 3> made{b.result(t, s.inner.shape(), "gate and up gradient"),
                                     b.result(t, {rows, inner}, "weighted activations"),
                                     b.result(t, {tokens, k}, "shares gradient")};
  const std::array<TensorId, 5> from{g.in[0].id(), s.down.id(), s.inner.id(), s.shares.id(), s.order.id()};
  b.emit("experts_down_backward", product(inner, hidden, false), from, made);
  const Value d_inner(b, made[0]), weighted(b, made[1]);
  Value d_shares(b, made[2]);
  Value d_down =
      experts_product("experts_down_weight", product(hidden, inner, true), s.down.shape(), weighted, g.in[0], s.order);
  const Value d_rows = experts_product("experts_up_backward", product(hidden, 2 * inner, false), {rows, hidden},
                                       d_inner, s.gate_up, s.order);
  Value dx = fill(b, "zeros", {tokens, hidden}, t);
  b.emit("sum_rows", MemoryOp{.read = data_bytes(d_rows), .written = data_bytes(dx), .dtype = t},
         std::array<TensorId, 2>{d_rows.id(), s.order.id()}, std::array<TensorId, 1>{dx.id()});
  Value d_gate_up =
      experts_product("experts_up_weight", product(2 * inner, hidden, true), s.gate_up.shape(), d_inner, s.x, s.order);
  if (g.wants(0)) g.out[0] = std::move(dx);
  if (g.wants(1)) g.out[1] = std::move(d_gate_up);
  if (g.wants(2)) g.out[2] = std::move(d_down);
  if (g.wants(3)) g.out[3] = std::move(d_shares);
  if (g.wants(4)) g.out[4] = bias_gradient(d_inner, s.order, {experts, 2 * inner});
  if (g.wants(5)) g.out[5] = bias_gradient(g.in[0], s.order, {experts, hidden});
}

/// x[tokens, hidden] through the experts that the route names, gate_up[experts, 2 inner, hidden] and
/// down[experts, hidden, inner]: rows are gathered, go through two grouped products with the gate between them, and are
/// added up by their shares.
inline Value fused_experts(Value x, Value gate_up, Value down, const FusedRoute& route, std::int64_t active,
                           const ExpertBiases& biases = {}) {
  Builder& b = x.builder();
  const DType t = x.dtype();
  const std::int64_t tokens = x.size(0), hidden = x.size(1), rows = route.order.size(0);
  const GradEdge ex = edge(x), eu = edge(gate_up), ed = edge(down), es = edge(route.shares);
  const GradEdge eub = edge(biases.up), edb = edge(biases.down);
  const bool trains = ex || eu || ed || es || eub || edb;
  Value y;
  FusedExpertsSaved s;
  Value share = detached(route.shares), order = route.order;
  {
    Value gathered = gather_rows("gather", detached(x), order, Shape{rows, hidden});
    const Value up = transpose(detached(gate_up), 1, 2);
    const Value inner = grouped_mm(std::move(gathered), up, route.offsets, active);
    s = {saved(x, trains),     saved(gate_up, trains), saved(down, trains),
         saved(inner, trains), saved(share, trains),   saved(order, trains)};
    y = fused_gate(inner);
  }
  y = grouped_mm(std::move(y), transpose(detached(down), 1, 2), route.offsets, active);
  s.active = active;
  const TensorId r = b.result(t, {tokens, hidden}, "combine");
  const MemoryOp combine{
      .read = data_bytes(y) + data_bytes(share) + data_bytes(order), .written = data_bytes(x), .dtype = t};
  Value out = emit1(b, "combine", combine, r, {}, y, share, order);
  differentiable(out, "LigerFusedMoEFunctionBackward", {ex, eu, ed, es, eub, edb},
                 [s = std::move(s)](Gradients& g) { fused_experts_backward(g, s); });
  return out;
}

}  // namespace vlmest::eager
