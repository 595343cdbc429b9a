// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// What blocks of many models ask of a stack. `module` runs what the model's own Python writes out; a stack with a
/// kernel for it does not call it.
namespace vlmest::stacks {

/// An RMS norm, or a layer norm without a bias, over the last dimension. x and weight are the caller's variables.
inline Value norm(Context& c, Norm::Kind kind, Value& x, Value& weight, CallRef<Value> module) {
  return c.words().norm(c, kind, x, weight, module);
}

/// apply_rotary_pos_emb: rebinds q and k.
inline void rotate(Context& c, Value& q, Value& k, const Value& cos, const Value& sin, CallRef<void> module) {
  c.words().rotate(c, q, k, cos, sin, module);
}

/// Two tensors beside each other in the last dimension.
inline Value join_channels(Context& c, const Value& first, const Value& second, CallRef<Value> module) {
  return c.words().join_channels(c, first, second, module);
}

/// x sigmoid(1.702 x)
inline Value quick_gelu(Context& c, const Value& x) { return c.words().quick_gelu(c, x); }

/// gelu by tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
inline Value gelu_new(Context& c, const Value& x) { return c.words().gelu_new(c, x); }

/// x plus y times a number.
inline Value add_scaled(Context& c, const Value& x, const Value& y) { return c.words().add_scaled(c, x, y); }

/// tanh(gate) * x with a gate of one element.
inline Value tanh_gate(Context& c, TensorId gate, Value x) { return c.words().tanh_gate(c, gate, std::move(x)); }

}  // namespace vlmest::stacks
