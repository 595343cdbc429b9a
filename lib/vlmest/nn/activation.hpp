// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <vlmest/nn/stack/kernels.hpp>

namespace vlmest {

/// Activation functions by what they run (transformers activations.py, ACT2FN).
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, gelu_new, quick_gelu, relu, sigmoid };

/// The activation that a config calls `name`, or Error.
inline Activation parse_activation(std::string_view name) {
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "gelu_new") return Activation::gelu_new;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "relu") return Activation::relu;
  if (name == "sigmoid") return Activation::sigmoid;
  throw Error("activation", "unknown activation '" + std::string(name) + "'",
              "known: silu, gelu, gelu_pytorch_tanh, gelu_new, quick_gelu, relu, sigmoid");
}

inline Value activate(Context& c, Activation a, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  switch (a) {
    case Activation::silu: return unary(functions::silu, x);
    case Activation::gelu:
    case Activation::gelu_tanh: return unary(functions::gelu, x);
    case Activation::relu: return unary(functions::relu, x);
    case Activation::sigmoid: return unary(functions::sigmoid, x);
    case Activation::gelu_new: return stacks::gelu_new(c, x);
    case Activation::quick_gelu: break;
  }
  return stacks::quick_gelu(c, x);
}

}  // namespace vlmest
