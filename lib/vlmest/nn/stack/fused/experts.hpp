// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/graph/eager/fused_moe.hpp>
#include <vlmest/nn/experts.hpp>

namespace vlmest::stacks::fused {

/// The experts' kernels read the router's logits themselves.
inline Routing route(Context&, CallRef<Routing>) { return {}; }

/// Experts of stored weights: gathered rows through two grouped products and the gate.
inline Value stored_experts(Context& c, const Moe& m, const Value& x, const eager::FusedRoute& route) {
  using namespace eager;
  const std::int64_t rows = route.order.size(0), active = active_experts(*m.config, x.size(0));
  Value order = route.order, share = route.shares;
  Value y = gather_rows("gather", x, order, Shape{rows, m.config->hidden});
  y = expert_matmul(c, y, m.gate_up, m.gate_up_stored, route.offsets, active);
  y = fused_gate(y);
  y = expert_matmul(c, y, m.down, m.down_stored, route.offsets, active);
  const TensorId r = c.b.result(x.dtype(), x.shape(), "combine");
  const MemoryOp combine{
      .read = data_bytes(y) + data_bytes(share) + data_bytes(order), .written = data_bytes(x), .dtype = x.dtype()};
  return emit1(c.b, "combine", combine, r, {}, y, share, order);
}

/// One kernel each for routing, gathering, the gate and the weighted sum.
inline Value experts(Context& c, const Moe& m, const Value& x, const Routing&) {
  using namespace eager;
  const MoeConfig& g = *m.config;
  const auto optional = [&](TensorId t) { return t == none ? Value() : Value(c.b, t); };
  Value logits = m.router_linear.weight == none ? linear(x, Value(c.b, m.router), optional(m.router_bias))
                                                : forward(c, m.router_linear, x);
  const FusedRoute routed = fused_route(std::move(logits), g.top_k);
  if (m.gate_up_stored.how) return stored_experts(c, m, x, routed);
  Value gate_up(c.b, m.gate_up), down(c.b, m.down);
  if (g.inputs_first) {
    gate_up = transpose(std::move(gate_up), 1, 2);
    down = transpose(std::move(down), 1, 2);
  }
  const ExpertBiases biases{optional(m.gate_up_bias), optional(m.down_bias)};
  return fused_experts(x, std::move(gate_up), std::move(down), routed, active_experts(g, x.size(0)), biases);
}

}  // namespace vlmest::stacks::fused
