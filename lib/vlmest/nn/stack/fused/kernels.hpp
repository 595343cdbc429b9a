// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// One kernel for each word, whichever way the model's modules write it.
namespace vlmest::stacks {

template <class Module>
Value norm(Fused, Context&, Norm::Kind kind, Value& x, Value& weight, Module&&) {
  return eager::fused_norm(kind, std::move(x), std::move(weight));
}

template <class Module>
void rotate(Fused, Context&, Value& q, Value& k, const Value& cos, const Value& sin, Module&&) {
  eager::fused_rotate(q, k, cos, sin);
}

template <class Module>
Value join_channels(Fused, Context&, const Value& first, const Value& second, Module&&) {
  return eager::cat(first, second, -1);
}

inline Value quick_gelu(Fused, Context&, const Value& x) { return eager::unary(eager::functions::quick_gelu, x); }

inline Value gelu_new(Fused, Context&, const Value& x) { return eager::unary(eager::functions::gelu, x); }

inline Value add_scaled(Fused, Context&, const Value& x, const Value& y) { return eager::add_scaled(x, y); }

inline Value tanh_gate(Fused, Context& c, TensorId gate, Value x) {
  return eager::fused_scale("tanh_gate", false, std::move(x), Value(c.b, gate));
}

}  // namespace vlmest::stacks
