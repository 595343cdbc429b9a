// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/experts.hpp>

namespace vlmest::stacks {

/// Where tokens go. `module` runs what the model's own router does; empty where `experts` finds it out.
inline Routing route(Context& c, CallRef<Routing> module) { return c.words().route(c, module); }

/// x[tokens, hidden] through the experts that r names, added up.
inline Value experts(Context& c, const Moe& m, const Value& x, const Routing& r) {
  return c.words().experts(c, m, x, r);
}

}  // namespace vlmest::stacks
