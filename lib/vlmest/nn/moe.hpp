// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/nn/stack/experts.hpp>

namespace vlmest {

/// Qwen3VLMoeTextTopKRouter.forward, and Qwen2MoeTopKRouter.forward, which asks norm_topk_prob: softmax in fp32 over
/// all experts, the top k of it normalised or not.
inline Routing route(Context& c, const Moe& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.router_scope);
  Routing r;
  r.logits = linear(x, Value(c.b, m.router), {});
  Value probabilities = softmax(r.logits, DType::fp32);
  Ranked top = topk(probabilities, m.config->top_k);
  if (m.config->normalised) {
    Value total = sum(top.values, -1, true);
    top.values = div_(std::move(top.values), std::move(total));
  }
  r.weights = to(top.values, r.logits.dtype());
  r.experts = std::move(top.indices);
  return r;
}

/// Qwen2MoeSparseMoeBlock.forward: sigmoid(gate(x)) * shared expert(x), behind the experts' result.
inline Value add_shared(Context& c, const Moe& m, const Value& flat, Value shared, Value y) {
  using namespace eager;
  Value gate = unary(functions::sigmoid, forward(c, m.shared_gate, flat));
  shared = mul(std::move(gate), shared);
  return add(std::move(y), shared);
}

/// Qwen3VLMoeTextSparseMoeBlock.forward: x[batch, tokens, hidden]; Qwen2MoeSparseMoeBlock.forward, whose shared expert
/// runs first.
inline Value forward(Context& c, const Moe& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.scope);
  const Shape s = x.shape();
  Value flat = view(x, {-1, m.config->hidden});
  Value shared;
  if (m.config->shared > 0) shared = forward(c, m.shared, flat);
  const Routing r = stacks::route(c, [&] { return route(c, m, flat); });
  Value y = stacks::experts(c, m, flat, r);
  if (shared) y = add_shared(c, m, flat, std::move(shared), std::move(y));
  return view(std::move(y), s);
}

}  // namespace vlmest
