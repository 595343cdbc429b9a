// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>
#include <vector>

#include <vlmest/nn/stack/experts.hpp>

/// Llama 4's mixture (transformers models/llama4, Llama4TextMoe): every expert runs on every token, which is first
/// multiplied by the expert's share, and that is next to nothing for all but the top k; an expert that sees every token
/// as it is.
namespace vlmest {

/// In the order of Llama4TextMoe.__init__.
inline Moe make_llama4_moe(Context& c, const MoeConfig& g) {
  Module m(c, "feed_forward");
  Moe r{.config = &g, .scope = m.scope};
  make_experts(c, g, r);
  make_router(c, g, r, "router");
  r.shared = make_gated_mlp(c, "shared_expert", g.hidden, g.shared, false, g.activation, "activation_fn");
  return r;
}

/// Llama4Router.forward: the logits of the top k stay where they are, the others become minus infinity; sigmoids of
/// all, in fp32. The shares are [tokens, experts].
inline Routing shares_of_all(Context& c, const Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.router_scope);
  Routing r;
  r.logits = linear(x, Value(c.b, m.router), {});
  const Ranked top = topk(r.logits, m.config->top_k);
  r.weights = fill_like("full_like", r.logits);
  r.weights = scatter_columns_(std::move(r.weights), top.indices, top.values);
  Value wide = to(r.weights, DType::fp32);
  Value shares = unary(functions::sigmoid, std::move(wide));
  r.weights = to(std::move(shares), r.logits.dtype());
  return r;
}

/// Llama4TextExperts.forward: x[experts * tokens, hidden], expert by expert. Throws Error for stored weights, which
/// transformers hands to a module that takes other arguments (integrations/finegrained_fp8.py, FP8Experts).
inline Value every_expert(Context& c, const Moe& m, const Value& x) {
  using namespace eager;
  if (m.gate_up_stored.how)
    throw Error("quantization_config", "transformers has no experts of stored weights that this model can call",
                "estimate it with wide weights, or with a runtime that has kernels for them");
  InScope in(c.b, m.experts_scope);
  const Value rows = view(x, {m.experts, -1, m.config->hidden});
  const Value gate_up = bmm(rows, Value(c.b, m.gate_up));
  const std::vector<Value> halves = split(gate_up, std::array{m.inner, m.inner}, -1);
  Value activated;
  {
    InScope a(c.b, m.activation_scope);
    activated = activate(c, m.config->activation, halves[0]);
  }
  Value gated = mul(halves[1], std::move(activated));
  Value y = bmm(std::move(gated), Value(c.b, m.down));
  return view(std::move(y), {-1, m.config->hidden});
}

/// What Llama4TextMoe.forward returns.
struct MixedTokens {
  Value out;     ///< [tokens, hidden]
  Value logits;  ///< of the router, [tokens, experts]
};
inline MixedTokens mix(Context& c, const Moe& m, const Value& arg) {
  using namespace eager;
  InScope in(c.b, m.scope);
  const std::int64_t hidden = m.config->hidden, experts = m.experts;
  const Value x = reshape(arg, {-1, hidden});
  const Routing r = stacks::route(c, [&] { return shares_of_all(c, m, x); });
  Value rows, routed;
  if (c.stack().runs_every_expert) {
    rows = repeat(x, {experts, 1});
    Value shares = reshape(transpose(r.weights, 0, 1), {-1, 1});
    rows = mul(rows, std::move(shares));
    routed = every_expert(c, m, rows);
  } else {
    routed = stacks::experts(c, m, x, r);
  }
  Value out = forward(c, m.shared, x);
  Value sum_of_all = c.stack().runs_every_expert ? sum(reshape(routed, {experts, -1, hidden}), 0, false) : routed;
  out = add_(std::move(out), std::move(sum_of_all));
  return {std::move(out), r.logits};
}

}  // namespace vlmest
