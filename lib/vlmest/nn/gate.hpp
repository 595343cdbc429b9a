// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// tanh(gate) * x with a gate of one element (Flamingo, arXiv:2204.14198, section 2.2; modeling_mllama.py).
inline Value tanh_gate(Context& c, TensorId gate, Value x) {
  using namespace eager;
  if (c.fused()) return fused_scale("tanh_gate", false, c.plan.multiprocessors, std::move(x), Value(c.b, gate));
  Value opening = unary("tanh", Value(c.b, gate));
  return mul(std::move(opening), std::move(x));
}

}  // namespace vlmest
