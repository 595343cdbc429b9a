// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/gated_mlp.hpp>

namespace vlmest::stacks::fused {

/// One kernel between the products.
inline Value gated_mlp(Context& c, const GatedMlp& m, const Value& x) {
  using namespace eager;
  Value gate = forward(c, m.gate, x);
  if (m.is_packed()) return forward(c, m.down, fused_gate(std::move(gate)));
  Value up = forward(c, m.up, x);
  return forward(c, m.down, fused_gate(std::move(gate), std::move(up)));
}

}  // namespace vlmest::stacks::fused
