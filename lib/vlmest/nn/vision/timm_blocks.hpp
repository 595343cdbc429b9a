// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/graph/eager/attention.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/dropout.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/stack/attention.hpp>

/// What blocks of timm's transformers share (timm 1.0: layers/attention.py, layers/mlp.py).
namespace vlmest {

/// timm takes torch's attention whatever attn_implementation says: q[B, H, S, D] -> [B, S, H * D].
inline Value timm_attention(Context& c, const Value& q, const Value& k, const Value& v, bool drops = false) {
  using namespace eager;
  const Shape rows{q.size(0), q.size(2), checked_mul(q.size(1), v.size(3))};
  if (c.attention() == AttentionKind::flash) return reshape(stacks::attend(c, {.q = q, .k = k, .v = v}).out, rows);
  const Value x = scaled_dot_product_attention(q, k, v, {}, false, drops && c.plan.dropout);
  return reshape(transpose(x, 1, 2), rows);
}

/// Mlp.
struct TimmMlp {
  ScopeId scope = 0, activation_scope = 0, first_dropout = 0, second_dropout = 0;
  Linear fc1, fc2;
};
inline TimmMlp make_timm_mlp(Context& c, std::int64_t width, std::int64_t inner) {
  Module m(c, "mlp");
  TimmMlp r{.scope = m.scope};
  r.fc1 = make_linear(c, "fc1", width, inner, true);
  r.activation_scope = c.b.child("act");
  r.first_dropout = c.b.child("drop1");
  r.fc2 = make_linear(c, "fc2", inner, width, true);
  r.second_dropout = c.b.child("drop2");
  return r;
}
/// Mlp.forward, through which the caller's argument lives.
inline Value forward(Context& c, const TimmMlp& m, Value arg, bool drops = false) {
  const Value given = std::move(arg);
  InScope in(c.b, m.scope);
  const auto dropped = [&](ScopeId scope, Value x) {
    InScope drop(c.b, scope);
    return drops ? dropout(c, std::move(x)) : x;
  };
  Value x = forward(c, m.fc1, given);
  {
    InScope act(c.b, m.activation_scope);
    x = activate(c, Activation::gelu, x);
  }
  x = dropped(m.first_dropout, x);
  x = forward(c, m.fc2, x);
  return dropped(m.second_dropout, std::move(x));
}

}  // namespace vlmest
