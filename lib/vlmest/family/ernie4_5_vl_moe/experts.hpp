// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <vlmest/nn/mlp.hpp>
#include <vlmest/nn/moe.hpp>
#include <vlmest/nn/sequence.hpp>
#include <vlmest/nn/stack/experts.hpp>

namespace vlmest {

/// Experts for text and others for what is seen, beside an MLP for every token (transformers models/ernie4_5_vl_moe,
/// Ernie4_5_VLMoeMoeBlock). Defaults: Ernie4_5_VLMoeTextConfig.
struct ModalityMoeConfig {
  MoeConfig text{.hidden = 2560, .inner = 1536, .experts = 64, .top_k = 6};
  MoeConfig vision{.hidden = 2560, .inner = 512, .experts = 64, .top_k = 6};
  /// moe_num_shared_experts: together one MLP, so many times as wide as a text expert; 0: none.
  std::int64_t shared = 2;
  bool bias = false;  ///< of that MLP
};

/// A router with its experts, Ernie4_5_VLMoeSparseMoeBlock.
struct ModalityExperts {
  Moe moe;
  ScopeId statics_scope = 0;
  TensorId correction = none;  ///< e_score_correction_bias, fp32[1, experts]
};

struct ModalityMoe {
  const ModalityMoeConfig* config = nullptr;
  ScopeId scope = 0;
  ModalityExperts text, vision;
  GatedMlp shared;
};

/// In the order of Ernie4_5_VLMoeSparseMoeBlock.__init__. The router is in fp32 whatever the model's type is
/// (Ernie4_5_VLMoePreTrainedModel, _keep_in_fp32_modules_strict).
inline ModalityExperts make_modality_experts(Context& c, const char* name, const MoeConfig& g) {
  Module m(c, name);
  ModalityExperts r{.moe = {.config = &g, .scope = m.scope}};
  {
    Module gate(c, "gate");
    r.moe.router_scope = gate.scope;
    r.moe.router = parameter(c, "weight", {g.experts, g.hidden}, DType::fp32);
    Module statics(c, "moe_statics");
    r.statics_scope = statics.scope;
    r.correction = fixed_parameter(c, "e_score_correction_bias", {1, g.experts}, DType::fp32);
  }
  make_experts(c, g, r.moe);
  return r;
}

/// In the order of Ernie4_5_VLMoeMoeBlock.__init__. Of the experts of vision a token that is written, which is text,
/// goes through none.
inline ModalityMoe make_modality_moe(Context& c, const ModalityMoeConfig& g) {
  Module m(c, "mlp");
  ModalityMoe r{.config = &g, .scope = m.scope};
  r.text = make_modality_experts(c, "text_moe", g.text);
  r.vision = make_modality_experts(c, "vision_moe", g.vision);
  for (RoutedWeight& w : c.b.graph.routed)
    if (w.weight == r.vision.moe.gate_up || w.weight == r.vision.moe.down) w.top_k = 0;
  if (g.shared > 0)
    r.shared = make_gated_mlp(c, "shared_experts", g.text.hidden, checked_mul(g.text.inner, g.shared), g.bias,
                              g.text.activation);
  return r;
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeMoeTopKRouter.forward: the correction counts where experts are chosen,
/// and nowhere else.
inline Routing route(Context& c, const ModalityExperts& m, const Value& x) {
  using namespace eager;
  InScope in(c.b, m.moe.router_scope);
  const Autocast off(c.b, std::nullopt);
  Routing r;
  {
    Value wide = to(x, DType::fp32);
    r.logits = linear(std::move(wide), Value(c.b, m.moe.router), {});
  }
  Value weights = softmax(r.logits, DType::fp32);
  Ranked top;  // its values are a variable of the function too
  {
    Value corrected;
    {
      InScope statics(c.b, m.statics_scope);
      corrected = add(weights, view(Value(c.b, m.correction), {m.moe.config->experts}));
    }
    top = topk(corrected, m.moe.config->top_k);
  }
  weights = gather_columns(weights, top.indices);
  {
    Value total = sum(weights, -1, true);
    total = clamp(std::move(total), ClampedAt::min);
    weights = div(weights, std::move(total));
  }
  r.weights = to(weights, x.dtype());
  r.experts = top.indices;
  return r;
}

/// States and the router's logits of the same rows; of a fused router there are no logits.
struct RoutedStates {
  Value states, logits;
};

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeSparseMoeBlock.forward: both as one vector.
inline RoutedStates forward(Context& c, const ModalityExperts& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.moe.scope);
  x = view(x, {-1, m.moe.config->hidden});
  const Routing r = stacks::route(c, [&] { return route(c, m, x); });
  const auto one_vector = [](const Value& v) { return view(v, {-1}); };
  RoutedStates y;
  y.states = one_vector(stacks::experts(c, m.moe, x, r));
  if (r.logits) y.logits = one_vector(r.logits);
  return y;
}

/// Which tokens are seen: moe_mm_token_type_ids, int64[B, S], none where nothing is, and how many of them are marked.
struct SeenTokens {
  Value types;
  std::int64_t count = 0;
};

/// processing_ernie4_5_vl_moe.py, create_moe_mm_token_type_ids: the placeholders of pictures and videos and, as long as
/// there is text, the two tokens that the prompt sets around each.
inline std::int64_t seen_tokens(const Sequences& s) {
  std::int64_t n = 0;
  for (const auto* all : {&s.images, &s.videos})
    for (const ImageLayout& l : *all) n = checked_add(n, checked_add(l.llm_tokens, 2));
  return std::min(n, checked_mul(s.batch, s.seq));
}

/// modeling_ernie4_5_vl_moe.py, Ernie4_5_VLMoeMoeBlock.forward: x[B, S, hidden] -> the same, and logits[B S, experts].
/// Each kind of token is picked element by element, goes through its experts and is put back into its places.
inline RoutedStates forward(Context& c, const ModalityMoe& m, const Value& x, const SeenTokens& seen) {
  using namespace eager;
  InScope in(c.b, m.scope);
  const std::int64_t width = x.size(-1), experts = m.config->text.experts, tokens = x.size(0) * x.size(1);
  Value shared, marked;  // variables of the function: alive until it returns
  if (m.config->shared > 0) shared = forward(c, m.shared, x);
  if (seen.types) item(reduce("any", DType::boolean, Shape{}, seen.types));
  RoutedStates r;
  if (seen.types && seen.count > 0) {
    r.states = fill(c.b, "zeros_like", x.shape(), x.dtype());
    r.logits = fill(c.b, "zeros", {tokens, experts}, DType::fp32);
    marked = to(seen.types, DType::boolean);
    const Value of_logits = expand(unsqueeze(view(marked, {-1}), 1), {-1, experts});
    const Value of_states = expand(unsqueeze(marked, -1), {-1, -1, width});
    const auto run = [&](const ModalityExperts& part, std::int64_t rows, auto&& mask) {
      const std::int64_t channels = checked_mul(rows, width), scores = checked_mul(rows, experts);
      Value picked = masked_index(x, mask(of_states), channels);
      RoutedStates y = forward(c, part, std::move(picked));
      r.states = masked_index_put_(r.states, mask(of_states), std::move(y.states), channels);
      if (y.logits) r.logits = masked_index_put_(r.logits, mask(of_logits), std::move(y.logits), scores);
    };
    run(m.text, tokens - seen.count, [](const Value& v) { return pointwise("bitwise_not", DType::boolean, v); });
    run(m.vision, seen.count, [](const Value& v) { return v; });
  } else {
    r = forward(c, m.text, x);
    r.states = reshape(r.states, x.shape());
    if (r.logits) r.logits = reshape(r.logits, {-1, experts});
  }
  if (shared) r.states = add(r.states, shared);
  return r;
}

}  // namespace vlmest
