// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/fused/kernels.hpp>
#include <vlmest/nn/stack/transformers/kernels.hpp>

/// What blocks of many models ask of a stack. `module` runs what the model's own Python writes out; a stack with a
/// kernel for it does not call it.
namespace vlmest::stacks {

/// An RMS norm, or a layer norm without a bias, over the last dimension. x and weight are the caller's variables.
template <class Module>
Value norm(Context& c, Norm::Kind kind, Value& x, Value& weight, Module&& module) {
  return on_stack(c.plan.runtime, [&](auto s) { return norm(s, c, kind, x, weight, module); });
}

/// apply_rotary_pos_emb: rebinds q and k.
template <class Module>
void rotate(Context& c, Value& q, Value& k, const Value& cos, const Value& sin, Module&& module) {
  on_stack(c.plan.runtime, [&](auto s) { rotate(s, c, q, k, cos, sin, module); });
}

/// Two tensors beside each other in the last dimension.
template <class Module>
Value join_channels(Context& c, const Value& first, const Value& second, Module&& module) {
  return on_stack(c.plan.runtime, [&](auto s) { return join_channels(s, c, first, second, module); });
}

/// x sigmoid(1.702 x)
inline Value quick_gelu(Context& c, const Value& x) {
  return on_stack(c.plan.runtime, [&](auto s) { return quick_gelu(s, c, x); });
}

/// gelu by tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
inline Value gelu_new(Context& c, const Value& x) {
  return on_stack(c.plan.runtime, [&](auto s) { return gelu_new(s, c, x); });
}

/// x plus y times a number.
inline Value add_scaled(Context& c, const Value& x, const Value& y) {
  return on_stack(c.plan.runtime, [&](auto s) { return add_scaled(s, c, x, y); });
}

/// tanh(gate) * x with a gate of one element.
inline Value tanh_gate(Context& c, TensorId gate, Value x) {
  return on_stack(c.plan.runtime, [&](auto s) { return tanh_gate(s, c, gate, std::move(x)); });
}

}  // namespace vlmest::stacks
