// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/linear.hpp>
#include <vlmest/nn/norm.hpp>

namespace vlmest {

/// The merger of Qwen2-VL and Qwen2.5-VL: each patch is normed, merge x merge of them are read as one row, and a
/// two-layer MLP projects it to the language model's width. `NormLayer` is LayerNorm or RmsNorm.
template <class NormLayer>
struct PatchMerger {
  ScopeId scope = 0, activation_scope = 0;
  std::int64_t width = 0;  ///< of a merged row
  NormLayer norm;
  Linear in, out;
};

/// modeling_qwen2_vl.py, PatchMerger.__init__; `make_norm(name, width)` declares ln_q.
template <class NormLayer, class MakeNorm>
PatchMerger<NormLayer> make_patch_merger(Context& c, std::int64_t patch_width, std::int64_t merge, std::int64_t out,
                                         MakeNorm make_norm) {
  Module m(c, "merger");
  PatchMerger<NormLayer> r{.scope = m.scope, .width = checked_mul(patch_width, checked_mul(merge, merge))};
  r.norm = make_norm("ln_q", patch_width);
  r.in = make_linear(c, "mlp", r.width, r.width, true, 0);
  r.activation_scope = c.b.child("mlp", 1);
  r.out = make_linear(c, "mlp", r.width, out, true, 2);
  return r;
}

/// modeling_qwen2_vl.py, PatchMerger.forward: one expression; torch.nn.Sequential rebinds its input step by step.
template <class NormLayer>
Value forward(Context& c, const PatchMerger<NormLayer>& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  Value rows = view(forward(c, m.norm, x), {-1, m.width});
  Value y = forward(c, m.in, rows);
  {
    InScope a(c.b, m.activation_scope);
    y = unary(functions::gelu, y);
  }
  y = forward(c, m.out, y);
  return y;
}

}  // namespace vlmest
