// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/quantization/experts.hpp>

namespace vlmest {

/// What stands between an expert's two products.
enum class ExpertGate : std::uint8_t {
  plain,           ///< act(gate) * up over the halves of the first one's result
  clamped_pairs,   ///< both clamped, every gate beside what it multiplies (GPT-OSS)
  clamped_halves,  ///< both clamped, over halves (MiniMax-M3)
};

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
  bool inputs_first = false;  ///< matrices lie as [in, out] (GPT-OSS, Llama 4, Aria)
  bool biased = false;        ///< GPT-OSS: products and router have biases
  ExpertGate gate = ExpertGate::plain;
  /// Aria: each matrix is a module of its own, and the host runs one product for each expert, of as many rows as it
  /// got.
  bool sequential = false;
  /// Step-3.7: the host asks which experts got rows and goes through these, one after the other; both sides of their
  /// gates are clamped, by bounds that may be infinite.
  bool looped = false;
};

struct Moe {
  const MoeConfig* config = nullptr;
  ScopeId scope = 0, experts_scope = 0, activation_scope = 0, router_scope = 0;
  TensorId gate_up = none;  ///< [experts, 2 * inner, hidden]; inputs_first: [experts, hidden, 2 * inner]
  TensorId down = none;     ///< [experts, hidden, inner]; inputs_first: [experts, inner, hidden]
  TensorId router = none;   ///< [experts, hidden]
  TensorId gate_up_bias = none, down_bias = none, router_bias = none;
  ScopeId gate_up_scope = 0, down_scope = 0;  ///< of products that are modules: sequential
  GatedMlp shared;                            ///< only where config->shared > 0
  Linear shared_gate;
  Linear router_linear;                         ///< where the router is a linear module, whose weight `router` is then
  std::int64_t inner = 0, experts = 0;          ///< those of its config, or this rank's part
  bool divided = false;                         ///< experts are divided among GPUs
  bool masked = false;                          ///< some are on other GPUs: the router leaves out their tokens
  QuantizedWeight gate_up_stored, down_stored;  ///< where the checkpoint stores them in a way of its own
};

/// Notes that t holds something of every expert, of which a token goes through top_k.
inline TensorId routed(Context& c, const MoeConfig& g, TensorId t) {
  c.b.graph.routed.push_back({t, g.experts, g.top_k});
  return t;
}

/// The experts' weights in the current scope.
inline void make_expert_products(Context& c, const MoeConfig& g, Moe& r) {
  const bool inner = shard_style(c, "gate_up_proj") == ShardStyle::packed_colwise,
             whole_ones = shard_style(c, "gate_up_proj") == ShardStyle::grouped_gemm;
  r.divided = inner || whole_ones;
  r.inner = inner ? shard_of(c, g.inner) : g.inner;
  r.experts = whole_ones ? shard_of(c, g.experts) : g.experts;
  const ExpertWeights w = make_expert_weights(
      c, {.in = g.hidden, .out = checked_mul(r.inner, 2), .experts = r.experts, .inputs_first = g.inputs_first},
      {.in = r.inner, .out = g.hidden, .experts = r.experts, .inputs_first = g.inputs_first});
  if (r.divided) {
    note_shard(c, w.gate_up.weight);
    note_shard(c, w.down.weight);
  }
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
inline void make_router(Context& c, const MoeConfig& g, Moe& r, const char* name = "gate") {
  Module gate(c, name);
  r.router_scope = gate.scope;
  r.masked = shard_style(c) == ShardStyle::ep_router;
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

/// And of those on this rank, where each has its part of them.
inline std::int64_t active_experts(const Moe& m, std::int64_t tokens) {
  const std::int64_t all = active_experts(*m.config, tokens);
  return m.masked ? std::max<std::int64_t>(1, all * m.experts / m.config->experts) : all;
}

/// Rows of a recorded run that its router sent to each expert: of a layer, by how many rows there are in all.
struct RoutedRows {
  std::function<std::vector<std::int64_t>(std::int32_t layer, std::int64_t rows)> of;
};

/// The layer that a mixture stands in.
inline std::int32_t layer_of(const Context& c, const Moe& m) {
  const auto& scopes = c.b.graph.scopes;
  return scopes[static_cast<std::size_t>(scopes[static_cast<std::size_t>(m.scope)].parent)].index;
}

/// Rows of each expert where tokens are sent to as many experts as active_experts says, alike to each: those of the
/// first are one more where they do not divide. A recorded run's, where the context has them.
inline std::vector<std::int64_t> rows_of_experts(const Context& c, const Moe& m, std::int64_t tokens) {
  const MoeConfig& g = *m.config;
  const std::int64_t rows = checked_mul(tokens, g.top_k);
  if (c.routed_rows) return c.routed_rows->of(layer_of(c, m), rows);
  const std::int64_t active = std::clamp<std::int64_t>(active_experts(g, tokens), 1, g.experts);
  std::vector<std::int64_t> r(static_cast<std::size_t>(g.experts), 0);
  for (std::int64_t i = 0; i < active; ++i)
    r[static_cast<std::size_t>(i)] = rows / active + (i < rows % active ? 1 : 0);
  return r;
}

/// What the router decides; the logits stay alive with it (the caller unpacks all three).
struct Routing {
  Value logits;   ///< [tokens, experts]
  Value weights;  ///< [tokens, top_k]
  Value experts;  ///< int64[tokens, top_k]
};

}  // namespace vlmest
