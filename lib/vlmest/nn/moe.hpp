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

/// transformers 5.17 distributed/tensor_parallel.py, EpRouterParallel.transform_output_post_forward: of experts on
/// other ranks weights become 0 and ids that of no expert. What the router gave is a variable of the caller until then.
inline Routing mask_others(const Moe& m, const Routing& given, int ranks) {
  using namespace eager;
  Routing r;
  r.logits = given.logits;
  r.weights = sum_gradient_in_place(given.weights, ranks);
  Value owner = unary("floor_divide", given.experts);
  const Value elsewhere = compare_scalar("ne.Scalar", std::move(owner));
  r.weights = masked_fill(r.weights, elsewhere);
  r.experts = masked_fill(given.experts, elsewhere);
  if (m.experts > 1) {
    r.experts = unary("fmod", r.experts);
  } else {
    for (const char* test : {"gt.Scalar", "lt.Scalar"}) {
      Value beyond = compare_scalar(test, r.experts);
      r.experts = masked_fill(r.experts, std::move(beyond));
    }
  }
  Value none_here = compare_scalar("eq.Scalar", r.experts);
  r.experts = masked_fill(r.experts, std::move(none_here));
  return r;
}

/// MoeExpertsParallel: every rank's experts see all tokens, and what they give is summed in place.
inline Value experts_of_ranks(Context& c, const Moe& m, const Value& x, const Routing& given) {
  using namespace eager;
  if (!m.divided) return stacks::experts(c, m, x, given);
  const int ranks = c.sharding->ranks;
  Routing r = given;
  const Value tokens = sum_gradient_in_place(x, ranks);
  r.weights = sum_gradient_in_place(r.weights, ranks);
  Value y = stacks::experts(c, m, tokens, r);
  InScope in(c.b, m.experts_scope);
  all_reduce_(detached(y), ranks);
  return y;
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
  Routing r = stacks::route(c, [&] { return route(c, m, flat); });
  if (m.masked) r = mask_others(m, r, c.sharding->ranks);
  Value y = experts_of_ranks(c, m, flat, r);
  if (shared) y = add_shared(c, m, flat, std::move(shared), std::move(y));
  return view(std::move(y), s);
}

}  // namespace vlmest
