// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include <vlmest/nn/gated_mlp.hpp>

namespace vlmest::stacks::transformers {

/// modeling_phi3.py, Phi3MLP.forward: the gate, a view of both halves, is a variable to the end.
inline Value packed_mlp(Context& c, const GatedMlp& m, const Value& x) {
  using namespace eager;
  Value up = forward(c, m.gate, x);
  const std::int64_t inner = up.size(-1) / 2;
  std::vector<Value> halves = split(std::move(up), std::array{inner, inner}, -1);
  const Value gate = std::move(halves[0]);
  up = std::move(halves[1]);
  Value activated;
  {
    InScope a(c.b, m.activation_scope);
    activated = activate(c, m.activation, gate);
  }
  up = mul(up, std::move(activated));
  return forward(c, m.down, up);
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLDenseMLP.forward: the product and its clamped halves are variables to the end.
inline Value clamped_packed_mlp(Context& c, const GatedMlp& m, const Value& x) {
  const Value gate_up = forward(c, m.gate, x);
  const std::int64_t inner = gate_up.size(-1) / 2;
  std::vector<Value> halves = eager::split(gate_up, std::array{inner, inner}, -1);
  Value gate = std::move(halves[0]), up = std::move(halves[1]), glu;
  Value product = clamped_glu(gate, up, glu);
  return forward(c, m.down, std::move(product));
}

/// modeling_step3p7.py, Step3p7MLP.forward: gate and what it multiplies are variables to the end.
inline Value clamped_mlp(Context& c, const GatedMlp& m, const Value& x) {
  using namespace eager;
  Value gate = forward(c, m.gate, x);
  {
    InScope a(c.b, m.activation_scope);
    gate = activate(c, m.activation, std::move(gate));
  }
  gate = clamp(std::move(gate), ClampedAt::max);
  const Value up = clamp(forward(c, m.up, x), ClampedAt::both);
  return forward(c, m.down, mul(gate, up));
}

/// modeling_llama.py, LlamaMLP.forward, one expression.
inline Value gated_mlp(Context& c, const GatedMlp& m, const Value& x) {
  if (m.is_packed()) return m.clamped ? clamped_packed_mlp(c, m, x) : packed_mlp(c, m, x);
  if (m.clamped) return clamped_mlp(c, m, x);
  Value gate = forward(c, m.gate, x);
  {
    InScope a(c.b, m.activation_scope);
    gate = activate(c, m.activation, std::move(gate));
  }
  Value up = forward(c, m.up, x);
  return forward(c, m.down, eager::mul(std::move(gate), std::move(up)));
}

}  // namespace vlmest::stacks::transformers
