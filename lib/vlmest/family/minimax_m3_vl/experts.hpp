// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include <vlmest/family/minimax_m3_vl/config.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/stack/experts.hpp>

namespace vlmest {

/// Experts chosen by sigmoids with a correction, beside one that sees every token (transformers models/minimax_m3_vl,
/// MiniMaxM3VLSparseMoeBlock).
struct MiniMaxM3Moe {
  Moe moe;
  TensorId correction = none;  ///< e_score_correction_bias[experts], in the model's type
  GatedMlp shared;
};

/// In the order of MiniMaxM3VLSparseMoeBlock.__init__.
inline MiniMaxM3Moe make_minimax_moe(Context& c, const MiniMaxM3Text& g) {
  Module m(c, "mlp");
  MiniMaxM3Moe r{.moe = {.config = &g.moe, .scope = m.scope}};
  make_router(c, g.moe, r.moe);
  {
    InScope gate(c.b, r.moe.router_scope);
    r.correction = buffer(c, "e_score_correction_bias", {g.moe.experts}, c.dtype());
  }
  {
    Module e(c, "experts");
    r.moe.experts_scope = r.moe.activation_scope = e.scope;
    make_expert_products(c, g.moe, r.moe);
  }
  r.shared = make_clamped_mlp(c, "shared_experts", g.hidden, g.shared_intermediate);
  return r;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLTopKRouter.forward: the correction counts where experts are chosen, and
/// nowhere else; weights stay in fp32.
inline Routing route(Context& c, const MiniMaxM3Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.moe.router_scope);
  Routing r;
  r.logits = linear(x, Value(c.b, m.moe.router), {});
  Value wide = to(r.logits, DType::fp32);
  const Value weights = unary(functions::sigmoid, std::move(wide));
  const Value corrected = add(weights, Value(c.b, m.correction));
  const Ranked top = topk(corrected, m.moe.config->top_k, false);
  r.experts = top.indices;
  r.weights = gather_columns(weights, r.experts);
  Value total = sum(r.weights, -1, true);
  r.weights = div_(std::move(r.weights), std::move(total));
  return r;
}

/// modeling_minimax_m3_vl.py, MiniMaxM3VLSparseMoeBlock.forward: the shared expert first; x[batch, tokens, hidden].
inline Value forward(Context& c, const MiniMaxM3Moe& m, const Value& arg) {
  using namespace eager;
  InScope in(c.b, m.moe.scope);
  const Shape s = arg.shape();
  Value x = view(arg, {-1, m.moe.config->hidden});
  const Value shared = forward(c, m.shared, x);
  const Routing r = stacks::route(c, [&] { return route(c, m, x); });
  x = stacks::experts(c, m.moe, x, r);
  x = mul_scalar(x);
  x = add(x, shared);
  return view(std::move(x), s);
}

}  // namespace vlmest
