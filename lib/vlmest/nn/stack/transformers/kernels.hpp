// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

/// transformers has no kernels of its own: it runs the model's modules, which the blocks write out.
namespace vlmest::stacks::transformers {

inline Value norm(Context&, Norm::Kind, Value&, Value&, CallRef<Value> module) { return module(); }

inline void rotate(Context&, Value&, Value&, const Value&, const Value&, CallRef<void> module) { module(); }

inline Value join_channels(Context&, const Value&, const Value&, CallRef<Value> module) { return module(); }

/// x * sigmoid(1.702 * x) (activations.py, QuickGELUActivation).
inline Value quick_gelu(Context&, const Value& x) {
  using namespace eager;
  Value gate = unary(functions::sigmoid, mul_scalar(x));
  return mul(x, std::move(gate));
}

/// activations.py, NewGELUActivation.forward, one expression.
inline Value gelu_new(Context&, const Value& x) {
  using namespace eager;
  Value half = mul_scalar(x);
  Value cubic = add(x, mul_scalar(pow_scalar(x)));
  Value gate = add_scalar(unary(functions::tanh, mul_scalar(std::move(cubic))));
  return mul(std::move(half), std::move(gate));
}

/// modeling_granite.py, GraniteDecoderLayer.forward.
inline Value add_scaled(Context&, const Value& x, const Value& y) { return eager::add(x, eager::mul_scalar(y)); }

/// modeling_mllama.py, MllamaCrossAttentionDecoderLayer.forward and MllamaVisionEncoderLayer.forward.
inline Value tanh_gate(Context& c, TensorId gate, Value x) {
  using namespace eager;
  Value opening = unary(functions::tanh, Value(c.b, gate));
  return mul(std::move(opening), std::move(x));
}

}  // namespace vlmest::stacks::transformers
