// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <vlmest/nn/moe.hpp>
#include <vlmest/nn/stack/experts.hpp>

namespace vlmest {

/// How a router of grouped experts chooses: by which scores, which of them count beside the best groups.
enum class GroupedRouter : std::uint8_t {
  /// The softmax over all experts in the logits' type; experts outside the best groups count as zero
  /// (modeling_mistral4.py, Mistral4TopkRouter).
  softmax,
  /// Sigmoids in fp32, to which a buffer is added where experts are chosen, and nowhere else; experts outside the best
  /// groups are left out (modeling_deepseek_v3.py, DeepseekV3TopkRouter; modeling_glm4v_moe.py,
  /// Glm4vMoeTextTopkRouter).
  corrected_sigmoid,
};

/// Experts beside shared ones, which every token goes through, chosen from the best of several groups
/// (DeepSeek-AI, DeepSeek-V3, arXiv:2412.19437, section 2.1.2). Defaults: DeepseekV3Config.
struct GroupedMoeConfig {
  MoeConfig experts{.hidden = 7168, .inner = 2048, .experts = 256, .top_k = 8};
  std::int64_t shared = 1;      ///< n_shared_experts: together one MLP, so many times as wide as an expert
  std::int64_t groups = 8;      ///< n_group
  std::int64_t top_groups = 4;  ///< topk_group
  GroupedRouter router = GroupedRouter::corrected_sigmoid;
};

struct GroupedMoe {
  const GroupedMoeConfig* config = nullptr;
  Moe moe;
  TensorId correction = none;  ///< e_score_correction_bias, fp32[experts]
  GatedMlp shared;
};

/// In the order of DeepseekV3MoE.__init__. The correction stays in fp32 whatever the model's type is
/// (DeepseekV3PreTrainedModel, _keep_in_fp32_modules_strict).
inline GroupedMoe make_grouped_moe(Context& c, const GroupedMoeConfig& g) {
  GroupedMoe m{.config = &g};
  m.moe = make_moe(c, "mlp", g.experts);
  if (g.router == GroupedRouter::corrected_sigmoid) {
    InScope in(c.b, m.moe.router_scope);
    m.correction = buffer(c, "e_score_correction_bias", {g.experts.experts}, DType::fp32);
  }
  InScope in(c.b, m.moe.scope);
  m.shared = make_gated_mlp(c, "shared_experts", g.experts.hidden, checked_mul(g.experts.inner, g.shared), false,
                            g.experts.activation);
  return m;
}

/// DeepseekV3TopkRouter.forward and Mistral4TopkRouter.forward: a group's score is the sum of its two best experts'.
inline Routing route(Context& c, const GroupedMoe& m, const Value& x) {
  using namespace eager;
  const GroupedMoeConfig& g = *m.config;
  InScope in(c.b, m.moe.router_scope);
  const bool corrected = g.router == GroupedRouter::corrected_sigmoid;
  const Value flat = view(x, {-1, g.experts.hidden});
  const std::int64_t tokens = flat.size(0), experts = g.experts.experts, each = experts / g.groups;
  Routing r;
  if (corrected) {
    Value wide = to(flat, DType::fp32);
    Value weight = to(Value(c.b, m.moe.router), DType::fp32);
    r.logits = linear(std::move(wide), std::move(weight), {});
  } else {
    r.logits = linear(flat, Value(c.b, m.moe.router), {});
  }
  const Value scores = corrected ? unary(functions::sigmoid, r.logits) : softmax(r.logits);
  Value eligible = corrected ? add(scores, Value(c.b, m.correction)) : scores;
  Value best = topk(view(eligible, {tokens, g.groups, each}), 2).values;
  const Value group_scores = sum(std::move(best), -1, false);
  const Value chosen = topk(group_scores, g.top_groups, false).indices;
  Value group_mask = fill(c.b, "zeros_like", group_scores.shape(), group_scores.dtype());
  group_mask = mark_places(std::move(group_mask), chosen);
  const Value mask = reshape(expand(unsqueeze(group_mask, -1), {tokens, g.groups, each}), {tokens, experts});
  Value outside = to(mask, DType::boolean);
  outside = pointwise("bitwise_not", DType::boolean, std::move(outside));
  eligible = masked_fill(eligible, std::move(outside));
  r.experts = topk(eligible, g.experts.top_k, false).indices;
  r.weights = gather_columns(scores, r.experts);
  Value denominator;
  if (g.experts.normalised) {
    denominator = add_scalar(sum(r.weights, -1, true));
    r.weights = div_(std::move(r.weights), denominator);
  }
  r.weights = mul_scalar(r.weights);
  return r;
}

/// DeepseekV3MoE.forward: experts, then the shared ones over the same input.
inline Value forward(Context& c, const GroupedMoe& m, Value arg) {
  using namespace eager;
  Value x = std::move(arg);
  InScope in(c.b, m.moe.scope);
  const Value residuals = x;
  const Shape s = x.shape();
  const Routing r = stacks::route(c, [&] { return route(c, m, x); });
  x = view(x, {-1, m.config->experts.hidden});
  x = view(stacks::experts(c, m.moe, x, r), s);
  Value shared = forward(c, m.shared, residuals);
  return add(x, std::move(shared));
}

}  // namespace vlmest
