// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// One kernel for each word, whichever way the model's modules write it.
namespace vlmest::stacks::fused {

inline Value norm(Context&, Norm::Kind kind, Value& x, Value& weight, CallRef<Value>) {
  return eager::fused_norm(kind, std::move(x), std::move(weight));
}

inline void rotate(Context&, Value& q, Value& k, const Value& cos, const Value& sin, CallRef<void>) {
  eager::fused_rotate(q, k, cos, sin);
}

inline Value join_channels(Context&, const Value& first, const Value& second, CallRef<Value>) {
  return eager::cat(first, second, -1);
}

inline Value quick_gelu(Context&, const Value& x) { return eager::unary(eager::functions::quick_gelu, x); }

inline Value gelu_new(Context&, const Value& x) { return eager::unary(eager::functions::gelu, x); }

inline Value add_scaled(Context&, const Value& x, const Value& y) { return eager::add_scaled(x, y); }

inline Value tanh_gate(Context& c, TensorId gate, Value x) {
  return eager::fused_scale("tanh_gate", false, std::move(x), Value(c.b, gate));
}

}  // namespace vlmest::stacks::fused
