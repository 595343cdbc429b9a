// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// (up + 1) gate sigmoid(alpha gate), both clamped, which rebinds them (modeling_gpt_oss.py, GptOssExperts._apply_gate;
/// modeling_minimax_m3_vl.py, MiniMaxM3VLDenseMLP.forward). `glu` is what the caller's variable of that name holds.
inline Value clamped_glu(Value& gate, Value& up, Value& glu) {
  using namespace eager;
  gate = clamp(gate, ClampedAt::max);
  up = clamp(up, ClampedAt::both);
  Value share = unary(functions::sigmoid, mul_scalar(gate));
  glu = mul(gate, std::move(share));
  return mul(add_scalar(up), glu);
}
inline Value clamped_glu(Value& gate, Value& up) {
  Value glu;
  return clamped_glu(gate, up, glu);
}

/// down(act(gate(x)) * up(x)).
struct GatedMlp {
  ScopeId scope = 0;
  ScopeId activation_scope = 0;
  Linear gate;  ///< or gate and up in one, twice as wide
  Linear up;    ///< none where `gate` holds both
  Linear down;
  Activation activation = Activation::silu;
  bool clamped = false;  ///< gate and factor are bounded: of a packed one by clamped_glu, else as Step-3.7's are

  bool is_packed() const { return up.weight == none; }
};

/// From `width` to `out` (0: the same); `function`: what its activation is called.
inline GatedMlp make_gated_mlp(Context& c, const char* name, std::int64_t width, std::int64_t inner, bool bias,
                               Activation activation, const char* function = "act_fn", std::int64_t out = 0) {
  Module m(c, name);
  GatedMlp r{.scope = m.scope, .activation = activation};
  r.gate = make_linear(c, "gate_proj", width, inner, bias);
  r.up = make_linear(c, "up_proj", width, inner, bias);
  r.down = make_linear(c, "down_proj", inner, out > 0 ? out : width, bias);
  r.activation_scope = c.b.child(function);
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
/// modeling_minimax_m3_vl.py, MiniMaxM3VLDenseMLP.__init__: the same with a clamped gate, which is no module.
inline GatedMlp make_clamped_mlp(Context& c, const char* name, std::int64_t width, std::int64_t inner) {
  Module m(c, name);
  GatedMlp r{.scope = m.scope, .clamped = true};
  r.gate = make_linear(c, "gate_up_proj", width, checked_mul(inner, 2), false);
  r.down = make_linear(c, "down_proj", inner, width, false);
  return r;
}

}  // namespace vlmest
