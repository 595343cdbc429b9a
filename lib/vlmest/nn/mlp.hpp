// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/stack/mlp.hpp>

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

/// Holds its argument, as the Python variable does.
inline Value forward(Context& c, const GatedMlp& m, Value arg) {
  const Value x = std::move(arg);
  InScope in(c.b, m.scope);
  return stacks::gated_mlp(c, m, x);
}

}  // namespace vlmest
