// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/gated_mlp.hpp>

namespace vlmest::stacks {

/// down(act(gate(x)) * up(x)); one linear may give gate and up.
inline Value gated_mlp(Context& c, const GatedMlp& m, const Value& x) { return c.words().gated_mlp(c, m, x); }

}  // namespace vlmest::stacks
