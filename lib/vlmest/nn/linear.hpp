// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/quantized.hpp>

namespace vlmest {

/// torch.nn.Linear: weight[out, in], optional bias[out].
struct Linear {
  ScopeId scope = 0;
  TensorId weight = none;
  TensorId bias = none;
  QuantizedWeight quantized;  ///< of a weight in a storage type of its own
  bool stored = false;        ///< the weight has one
};

inline Linear make_linear(Context& c, const char* name, std::int64_t in, std::int64_t out, bool bias) {
  Module m(c, name);
  Linear l{.scope = m.scope};
  l.stored = quantizes(c, name);
  if (l.stored) {
    l.weight = c.b.persistent("weight", Role::weight, *c.plan.weights, {out, in});
    l.quantized = make_quantized(c, *c.plan.weights, in, out);
  } else {
    l.weight = parameter(c, "weight", {out, in});
  }
  if (bias) l.bias = parameter(c, "bias", {out});
  return l;
}

/// torch.nn.functional.linear: x[..., in], weight[out, in] -> [..., out]. aten/src/ATen/native/Linear.cpp: with a bias
/// and a contiguous input, addmm on the flattened rows; without a bias, mm; a non-contiguous input is copied by the
/// reshape (mm), and its bias added afterwards.
inline Value linear(Value x, Value weight, Value bias) {
  Value w = eager::transpose(std::move(weight), 0, 1);
  Shape out = x.shape();
  out[out.rank() - 1] = w.size(1);
  const std::int64_t k = x.size(-1);
  if (bias && (x.shape().rank() == 2 || eager::is_contiguous(x)))
    return eager::view(eager::mm(eager::view(std::move(x), {-1, k}), std::move(w), std::move(bias)), out);
  Value y = eager::view(eager::mm(eager::reshape(std::move(x), {-1, k}), std::move(w)), out);
  return bias ? eager::add(std::move(y), std::move(bias)) : y;
}

inline Value forward(Context& c, const Linear& l, Value arg) {
  InScope in(c.b, l.scope);
  if (l.stored) {
    Shape out = arg.shape();
    const Value w(c.b, l.weight);
    out[out.rank() - 1] = w.size(0);
    Value y = eager::view(quantized_linear(c, std::move(arg), w, l.quantized), out);
    return l.bias == none ? y : eager::add(std::move(y), Value(c.b, l.bias));
  }
  return linear(std::move(arg), Value(c.b, l.weight), l.bias == none ? Value() : Value(c.b, l.bias));
}

}  // namespace vlmest
