// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <vlmest/graph/eager/fused_moe.hpp>
#include <vlmest/nn/activation.hpp>
#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/quantization/experts.hpp>

namespace vlmest {

/// A mixture of gated experts: each token goes to the top_k experts of the highest router probability.
struct MoeConfig {
  std::int64_t hidden = 2048;
  std::int64_t inner = 1408;  ///< moe_intermediate_size
  std::int64_t experts = 60;
  std::int64_t top_k = 4;
  Activation activation = Activation::silu;
  bool normalised = true;  ///< norm_topk_prob: the weights of a token's experts sum up to 1
  /// shared_expert_intermediate_size: an expert that sees every token, behind a gate of its own; 0: none.
  std::int64_t shared = 0;
  /// GPT-OSS: matrices lie as [in, out], products and router have biases, gates stand between what they multiply, and
  /// both are clamped.
  bool clamped = false;
};

struct Moe {
  const MoeConfig* config = nullptr;
  ScopeId scope = 0, experts_scope = 0, activation_scope = 0, router_scope = 0;
  TensorId gate_up = none;  ///< [experts, 2 * inner, hidden]; clamped: [experts, hidden, 2 * inner]
  TensorId down = none;     ///< [experts, hidden, inner]; clamped: [experts, inner, hidden]
  TensorId router = none;   ///< [experts, hidden]
  TensorId gate_up_bias = none, down_bias = none, router_bias = none;
  GatedMlp shared;  ///< only where config->shared > 0
  Linear shared_gate;
  QuantizedWeight gate_up_stored, down_stored;  ///< where the checkpoint stores them in a way of its own
};

/// Notes that t holds something of every expert, of which a token goes through top_k.
inline TensorId routed(Context& c, const MoeConfig& g, TensorId t) {
  c.b.graph.routed.push_back({t, g.experts, g.top_k});
  return t;
}

/// The experts' weights in the current scope.
inline void make_expert_products(Context& c, const MoeConfig& g, Moe& r) {
  const ExpertWeights w = make_expert_weights(
      c, {.in = g.hidden, .out = checked_mul(g.inner, 2), .experts = g.experts, .inputs_first = g.clamped},
      {.in = g.inner, .out = g.hidden, .experts = g.experts, .inputs_first = g.clamped});
  r.gate_up = routed(c, g, w.gate_up.weight);
  r.down = routed(c, g, w.down.weight);
  r.gate_up_stored = w.gate_up.quantized;
  r.down_stored = w.down.quantized;
}

inline void make_experts(Context& c, const MoeConfig& g, Moe& r) {
  Module e(c, "experts");
  r.experts_scope = e.scope;
  make_expert_products(c, g, r);
  r.activation_scope = c.b.child("act_fn");
}
inline void make_router(Context& c, const MoeConfig& g, Moe& r) {
  Module gate(c, "gate");
  r.router_scope = gate.scope;
  r.router = parameter(c, "weight", {g.experts, g.hidden});
}

/// transformers 5.17 modeling_qwen3_vl_moe.py, Qwen3VLMoeTextSparseMoeBlock.__init__, and modeling_qwen3_moe.py: the
/// experts before the router. modeling_qwen2_moe.py, Qwen2MoeSparseMoeBlock.__init__: router, experts, shared expert.
inline Moe make_moe(Context& c, const char* name, const MoeConfig& g) {
  Module m(c, name);
  Moe r{.config = &g, .scope = m.scope};
  if (g.shared == 0) {
    make_experts(c, g, r);
    make_router(c, g, r);
    return r;
  }
  make_router(c, g, r);
  make_experts(c, g, r);
  r.shared = make_gated_mlp(c, "shared_expert", g.hidden, g.shared, false, g.activation);
  r.shared_gate = make_linear(c, "shared_expert_gate", g.hidden, 1, false);
  return r;
}

/// Experts that at least one of `tokens` tokens is sent to, where every expert is equally likely: the mean of the
/// occupancy problem, E (1 - (1 - k / E)^tokens), rounded.
inline std::int64_t active_experts(const MoeConfig& g, std::int64_t tokens) {
  const double e = static_cast<double>(g.experts), missed = 1.0 - static_cast<double>(g.top_k) / e;
  return static_cast<std::int64_t>(std::llround(e * (1.0 - std::pow(missed, static_cast<double>(tokens)))));
}

/// What the router decides; the logits stay alive with it (the caller unpacks all three).
struct Routing {
  Value logits;   ///< [tokens, experts]
  Value weights;  ///< [tokens, top_k]
  Value experts;  ///< int64[tokens, top_k]
};

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

/// modeling_gpt_oss.py, GptOssExperts._apply_gate: (up + 1) gate sigmoid(alpha gate) over every other channel.
inline Value clamped_gate(const Value& gate_up) {
  using namespace eager;
  const std::int64_t channels = gate_up.size(-1);
  Value gate = slice(gate_up, -1, 0, channels, 2), up = slice(gate_up, -1, 1, channels, 2);
  gate = clamp(gate, false);
  up = clamp(up, true);
  Value share = unary("sigmoid", mul_scalar(gate));
  const Value glu = mul(gate, std::move(share));
  return mul(add_scalar(up), glu);
}

/// act(gate) * up over the halves of the last dimension (integrations/moe.py, _default_apply_gate).
inline Value apply_gate(Context& c, const Moe& m, const Value& gate_up) {
  if (m.config->clamped) return clamped_gate(gate_up);
  const std::int64_t inner = m.config->inner;
  std::vector<Value> halves = eager::split(gate_up, std::array{inner, inner}, -1);
  Value gate = std::move(halves[0]), up = std::move(halves[1]);
  Value activated;
  {
    InScope a(c.b, m.activation_scope);
    activated = activate(c, m.config->activation, gate);
  }
  return eager::mul(std::move(activated), up);
}

/// transformers 5.17 integrations/moe.py, grouped_mm_experts_forward, the implementation that is chosen by default
/// where torch has grouped_mm: rows are sorted by expert, go through two grouped products and back to their places.
/// The masks for rows of experts on other ranks are made and applied on one rank too. Biases are gathered for each row
/// and added in place (_grouped_linear).
inline Value experts(Context& c, const Moe& m, const Value& x, const Routing& r) {
  using namespace eager;
  const MoeConfig& g = *m.config;
  const GroupedDevice device{c.plan.compute_capability, c.plan.multiprocessors};
  InScope in(c.b, m.experts_scope);
  const std::int64_t tokens = x.size(0), rows = checked_mul(tokens, g.top_k), active = active_experts(g, tokens);
  Value sample_weights = reshape(r.weights, {-1}), ids = reshape(r.experts, {-1});
  Ranked sorted = sort(ids);
  Value source = unary("floor_divide", sorted.indices);
  Value selected = take_rows(x, std::move(source));
  Value weights = take_rows(sample_weights, sorted.indices);
  Value histogram_input = to(sorted.values, DType::int32);
  Value counts = histc(histogram_input, g.experts);
  Value offsets = cumsum(counts, DType::int32);
  Value elsewhere = unsqueeze(compare_scalar("ge.Scalar", sorted.values), -1);
  sorted.values = pointwise_("clamp_", std::move(sorted.values));
  Value bias;
  const auto product = [&](const Value& of, TensorId weight, const QuantizedWeight& stored) {
    Value p = expert_matmul(c, of, weight, stored, offsets, active, device, g.clamped);
    return bias ? add_(std::move(p), bias) : p;
  };
  if (g.clamped) bias = take_rows(to(Value(c.b, m.gate_up_bias), c.dtype()), sorted.values);
  selected = masked_fill_(std::move(selected), elsewhere);
  Value y = product(selected, m.gate_up, m.gate_up_stored);
  y = masked_fill(y, elsewhere);
  y = apply_gate(c, m, y);
  if (g.clamped) bias = take_rows(to(Value(c.b, m.down_bias), c.dtype()), sorted.values);
  y = product(y, m.down, m.down_stored);
  y = masked_fill(y, elsewhere);
  Value weighted = mul(y, unsqueeze(weights, -1));
  Value places = empty_like(sorted.indices);
  Value order = arange(c.b, rows);
  places = put_rows(std::move(places), sorted.indices, std::move(order));
  weighted = take_rows(weighted, places);
  return sum(view(weighted, {tokens, g.top_k, g.hidden}), 1, false);
}

/// The fused profile's experts of stored weights: gathered rows through two grouped products and the gate.
inline Value stored_experts(Context& c, const Moe& m, const Value& x, const eager::FusedRoute& route,
                            eager::GroupedDevice device) {
  using namespace eager;
  const std::int64_t rows = route.order.size(0), active = active_experts(*m.config, x.size(0));
  Value order = route.order, share = route.shares;
  Value y = gather_rows("gather", x, order, Shape{rows, m.config->hidden});
  y = expert_matmul(c, y, m.gate_up, m.gate_up_stored, route.offsets, active, device);
  y = fused_gate(y);
  y = expert_matmul(c, y, m.down, m.down_stored, route.offsets, active, device);
  const TensorId r = c.b.result(x.dtype(), x.shape(), "combine");
  const MemoryOp combine{
      .read = data_bytes(y) + data_bytes(share) + data_bytes(order), .written = data_bytes(x), .dtype = x.dtype()};
  return emit1(c.b, "combine", combine, r, {}, y, share, order);
}

/// The same with one kernel each for routing, gathering, the gate and the weighted sum, for the fused profile.
inline Value fused_moe(Context& c, const Moe& m, const Value& x) {
  using namespace eager;
  const MoeConfig& g = *m.config;
  const GroupedDevice device{c.plan.compute_capability, c.plan.multiprocessors};
  const auto optional = [&](TensorId t) { return t == none ? Value() : Value(c.b, t); };
  Value logits = linear(x, Value(c.b, m.router), optional(m.router_bias));
  const FusedRoute routed = fused_route(std::move(logits), g.top_k);
  if (m.gate_up_stored.how) return stored_experts(c, m, x, routed, device);
  Value gate_up(c.b, m.gate_up), down(c.b, m.down);
  if (g.clamped) {
    gate_up = transpose(std::move(gate_up), 1, 2);
    down = transpose(std::move(down), 1, 2);
  }
  const ExpertBiases biases{optional(m.gate_up_bias), optional(m.down_bias)};
  return fused_experts(x, std::move(gate_up), std::move(down), routed, active_experts(g, x.size(0)), device, biases);
}

/// Qwen2MoeSparseMoeBlock.forward: sigmoid(gate(x)) * shared expert(x), behind the experts' result.
inline Value add_shared(Context& c, const Moe& m, const Value& flat, Value shared, Value y) {
  using namespace eager;
  Value gate = unary("sigmoid", forward(c, m.shared_gate, flat));
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
  if (c.fused()) {
    Value y = fused_moe(c, m, flat);
    if (shared) y = add_shared(c, m, flat, std::move(shared), std::move(y));
    return view(std::move(y), s);
  }
  const Routing r = route(c, m, flat);
  Value y = experts(c, m, flat, r);
  if (shared) y = add_shared(c, m, flat, std::move(shared), std::move(y));
  return view(std::move(y), s);
}

}  // namespace vlmest
