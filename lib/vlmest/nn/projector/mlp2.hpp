// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>

namespace vlmest {

/// Linear, activation, linear (transformers models/llava, LlavaMultiModalProjector).
struct Mlp2Projector {
  std::int64_t in = 1024;   ///< vision width times the number of feature layers
  std::int64_t out = 4096;  ///< language width
  Activation activation = Activation::gelu;
  bool bias = true;
  std::int64_t inner = 0;  ///< between the two; 0: out
};

struct Mlp2 {
  ScopeId scope = 0, activation_scope = 0;
  Linear first, second;
  Activation activation = Activation::gelu;
};

inline Mlp2 make_projector(Context& c, const Mlp2Projector& g) {
  Mlp2 p{.scope = c.b.scope(), .activation = g.activation};
  const std::int64_t inner = g.inner > 0 ? g.inner : g.out;
  p.first = make_linear(c, "linear_1", g.in, inner, g.bias);
  p.activation_scope = c.b.child("act");
  p.second = make_linear(c, "linear_2", inner, g.out, g.bias);
  return p;
}

/// modeling_llava.py, LlavaMultiModalProjector.forward.
inline Value forward(Context& c, const Mlp2& p, Value arg) {
  Value features = std::move(arg);
  InScope in(c.b, p.scope);
  Value x = forward(c, p.first, features);
  {
    InScope a(c.b, p.activation_scope);
    x = activate(c, p.activation, x);
  }
  x = forward(c, p.second, x);
  return x;
}

}  // namespace vlmest
