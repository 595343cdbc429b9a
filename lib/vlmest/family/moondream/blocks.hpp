// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

/// What Moondream's towers, its language model and its region model share (moondream/torch/layers.py).
namespace vlmest::moondream {

/// An attention's or an MLP's two linear layers.
struct Pair {
  ScopeId scope = 0;
  Linear in, out;
};

inline Pair make_mlp(Context& c, const char* name, std::int64_t width, std::int64_t inner, std::int64_t out) {
  Module m(c, name);
  Pair p{.scope = m.scope};
  p.in = make_linear(c, "fc1", width, inner, true);
  p.out = make_linear(c, "fc2", inner, out, true);
  return p;
}

inline Pair make_attention(Context& c, std::int64_t width, std::int64_t qkv) {
  Module m(c, "attn");
  Pair p{.scope = m.scope};
  p.in = make_linear(c, "qkv", width, qkv, true);
  p.out = make_linear(c, "proj", width, width, true);
  return p;
}

/// layers.py, mlp: x0 holds what fc1 gave until fc2 has run.
inline Value forward_mlp(Context& c, const Pair& m, Value arg) {
  InScope in(c.b, m.scope);
  Value x = std::move(arg);
  Value x0 = forward(c, m.in, x);
  x = x0;
  x = eager::unary(eager::functions::gelu, x);
  x0 = forward(c, m.out, x);
  x = x0;
  return x;
}

/// x[B, S, H 64 or 72] as heads[B, H, S, D].
inline Value heads(const Value& x, std::int64_t head_dim) {
  return eager::transpose(eager::view(x, {x.size(0), x.size(1), -1, head_dim}), 1, 2);
}

}  // namespace vlmest::moondream
