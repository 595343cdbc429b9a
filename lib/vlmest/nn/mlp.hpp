// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// fc2(act(fc1(x))).
struct Mlp {
  ScopeId scope = 0;
  ScopeId activation_scope = 0;
  Linear fc1;
  Linear fc2;
  Activation activation = Activation::gelu;
};

/// As CLIP and its relatives name it (modeling_clip.py, CLIPMLP.__init__), with biases.
inline Mlp make_mlp(Context& c, std::int64_t width, std::int64_t inner, Activation activation) {
  Module m(c, "mlp");
  Mlp r{.scope = m.scope, .activation = activation};
  r.activation_scope = c.b.child("activation_fn");
  r.fc1 = make_linear(c, "fc1", width, inner, true);
  r.fc2 = make_linear(c, "fc2", inner, width, true);
  return r;
}

/// modeling_clip.py, CLIPMLP.forward: each step rebinds the variable.
inline Value forward(Context& c, const Mlp& m, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  x = forward(c, m.fc1, x);
  {
    InScope a(c.b, m.activation_scope);
    x = activate(c, m.activation, x);
  }
  x = forward(c, m.fc2, x);
  return x;
}

/// down(act(gate(x)) * up(x)).
struct GatedMlp {
  ScopeId scope = 0;
  ScopeId activation_scope = 0;
  Linear gate;  ///< or gate and up in one, twice as wide
  Linear up;    ///< none where `gate` holds both
  Linear down;
  Activation activation = Activation::silu;
};

inline GatedMlp make_gated_mlp(Context& c, const char* name, std::int64_t width, std::int64_t inner, bool bias,
                               Activation activation) {
  Module m(c, name);
  GatedMlp r{.scope = m.scope, .activation = activation};
  r.gate = make_linear(c, "gate_proj", width, inner, bias);
  r.up = make_linear(c, "up_proj", width, inner, bias);
  r.down = make_linear(c, "down_proj", inner, width, bias);
  r.activation_scope = c.b.child("act_fn");
  return r;
}

/// modeling_phi3.py, Phi3MLP.__init__: one linear gives the gate and what it multiplies.
inline GatedMlp make_packed_mlp(Context& c, const char* name, std::int64_t width, std::int64_t inner,
                                Activation activation) {
  Module m(c, name);
  GatedMlp r{.scope = m.scope, .activation = activation};
  r.gate = make_linear(c, "gate_up_proj", width, checked_mul(inner, 2), false);
  r.down = make_linear(c, "down_proj", inner, width, false);
  r.activation_scope = c.b.child("activation_fn");
  return r;
}

/// modeling_phi3.py, Phi3MLP.forward: the gate, a view of both halves, is a variable to the end.
inline Value packed_forward(Context& c, const GatedMlp& m, const Value& x) {
  using namespace eager;
  Value up = forward(c, m.gate, x);
  if (c.fused()) return forward(c, m.down, fused_gate(std::move(up)));
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

/// modeling_llama.py, LlamaMLP.forward, one expression.
inline Value forward(Context& c, const GatedMlp& m, Value arg) {
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  if (m.up.weight == none) return packed_forward(c, m, x);
  Value gate = forward(c, m.gate, x);
  if (!c.fused()) {
    InScope a(c.b, m.activation_scope);
    gate = activate(c, m.activation, std::move(gate));
  }
  Value up = forward(c, m.up, x);
  Value inner =
      c.fused() ? eager::fused_gate(std::move(gate), std::move(up)) : eager::mul(std::move(gate), std::move(up));
  return forward(c, m.down, std::move(inner));
}

}  // namespace vlmest
