// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/fused/experts.hpp>
#include <vlmest/nn/stack/transformers/experts.hpp>

namespace vlmest::stacks {

/// Where tokens go. `module` runs what the model's own router does; empty where `experts` finds it out.
template <class Module>
Routing route(Context& c, Module&& module) {
  return on_stack(c.plan.runtime, [&](auto s) { return route(s, c, module); });
}

/// x[tokens, hidden] through the experts that r names, added up.
inline Value experts(Context& c, const Moe& m, const Value& x, const Routing& r) {
  return on_stack(c.plan.runtime, [&](auto s) { return experts(s, c, m, x, r); });
}

}  // namespace vlmest::stacks
