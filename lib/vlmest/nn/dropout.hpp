// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/context.hpp>

namespace vlmest {

/// torch.nn.functional.dropout with a probability above zero: nothing at inference.
inline Value dropout(Context& c, Value arg) { return c.plan.dropout ? eager::native_dropout(std::move(arg)) : arg; }

/// Stochastic depth of a residual branch with a probability above zero (timm's DropPath; transformers 5.17
/// modeling_qianfan_ocr.py, QianfanOCRDropPath): one draw for each sample. Nothing at inference.
inline Value drop_path(Context& c, ScopeId scope, Value branch) {
  using namespace eager;
  if (!c.plan.dropout) return branch;
  InScope in(c.b, scope);
  Shape samples{branch.size(0)};
  for (int i = 1; i < branch.shape().rank(); ++i) samples.push_back(1);
  Value kept = fill(c.b, "rand", samples, branch.dtype());
  kept = unary("floor", add_scalar(kept));
  return mul(div_scalar(branch), kept);
}

}  // namespace vlmest
