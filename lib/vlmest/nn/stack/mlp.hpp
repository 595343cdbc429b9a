// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/fused/mlp.hpp>
#include <vlmest/nn/stack/transformers/mlp.hpp>

namespace vlmest::stacks {

/// down(act(gate(x)) * up(x)); one linear may give gate and up.
inline Value gated_mlp(Context& c, const GatedMlp& m, const Value& x) {
  return on_stack(c.plan.runtime, [&](auto s) { return gated_mlp(s, c, m, x); });
}

}  // namespace vlmest::stacks
