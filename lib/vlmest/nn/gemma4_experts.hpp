// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/norm.hpp>
#include <vlmest/nn/stack/experts.hpp>

namespace vlmest {

/// Experts beside the MLP of a Gemma 4 layer (modeling_gemma4.py, Gemma4TextRouter, Gemma4TextExperts and their norms
/// in Gemma4TextDecoderLayer).
struct Gemma4Experts {
  ScopeId router = 0;
  RmsNorm router_norm;
  Linear scores;
  TensorId scale = none;       ///< of the router's input, [hidden]
  TensorId per_expert = none;  ///< of the weights, [experts]
  Moe experts;
  RmsNorm after_mlp, after_experts, before_experts;
};

/// In the order of Gemma4TextDecoderLayer.__init__.
inline Gemma4Experts make_gemma4_experts(Context& c, const MoeConfig& g) {
  constexpr auto kind = RmsNorm::Kind::gemma4;
  Gemma4Experts r;
  {
    Module m(c, "router");
    r.router = m.scope;
    r.router_norm = make_weightless_norm(c, "norm");
    r.scores = make_linear(c, "proj", g.hidden, g.experts, false);
    r.scale = parameter(c, "scale", {g.hidden});
    r.per_expert = parameter(c, "per_expert_scale", {g.experts});
  }
  r.experts.config = &g;
  make_experts(c, g, r.experts);
  r.after_mlp = make_rms_norm(c, "post_feedforward_layernorm_1", g.hidden, kind);
  r.after_experts = make_rms_norm(c, "post_feedforward_layernorm_2", g.hidden, kind);
  r.before_experts = make_rms_norm(c, "pre_feedforward_layernorm_2", g.hidden, kind);
  return r;
}

/// Gemma4TextRouter.forward: x[tokens, hidden]. Weights stay fp32.
inline Routing route(Context& c, const Gemma4Experts& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.router);
  x = forward(c, m.router_norm, x);
  x = mul_scalar(mul(x, Value(c.b, m.scale)));
  const Value scores = forward(c, m.scores, x);
  Routing r;
  r.logits = softmax(scores, DType::fp32);
  Ranked top = topk(r.logits, m.experts.config->top_k);
  Value total = sum(top.values, -1, true);
  top.values = div_(std::move(top.values), std::move(total));
  r.experts = std::move(top.indices);
  Value factors = take_rows(Value(c.b, m.per_expert), r.experts);
  r.weights = mul(top.values, std::move(factors));
  return r;
}

/// Gemma4TextDecoderLayer.forward from the MLP's result on: variables of the layer, which stay to its end. The router's
/// first result takes the name of the attention's weights.
struct Gemma4Mixture {
  Value of_mlp, flat, of_experts;
  Routing routing;
};
inline Value mix(Context& c, const Gemma4Experts& m, const Value& mlp, const Value& residual, Gemma4Mixture& v,
                 Value& attention_weights) {
  using namespace eager;
  v.of_mlp = forward(c, m.after_mlp, mlp);
  v.flat = reshape(residual, {-1, residual.size(-1)});
  v.routing = stacks::route(c, [&] { return route(c, m, v.flat); });
  attention_weights.reset();
  v.of_experts = forward(c, m.before_experts, v.flat);
  v.of_experts = stacks::experts(c, m.experts, v.of_experts, v.routing);
  v.of_experts = reshape(v.of_experts, residual.shape());
  v.of_experts = forward(c, m.after_experts, v.of_experts);
  return add(v.of_mlp, v.of_experts);
}

}  // namespace vlmest
