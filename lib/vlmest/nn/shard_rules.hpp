// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <vlmest/graph/graph.hpp>

/// How transformers divides the modules of a language model among GPUs: the tables base_model_tp_plan and
/// base_model_ep_plan of its config classes, and the styles that they name (transformers 5.17,
/// distributed/tensor_parallel.py). Composite models take the plan of their language model and add nothing to it, so
/// that towers, projectors and their output head stay whole on every GPU; classes of language models alone divide the
/// output head too (`_tp_plan`).
namespace vlmest {

/// The styles, spelled as there.
enum class ShardStyle : std::uint8_t {
  whole,
  colwise,                ///< rows of weight and bias: a part of the outputs
  colwise_gather_output,  ///< the same, and all ranks' outputs are put together
  rowwise,                ///< columns of the weight: a part of the inputs; results are summed
  rowwise_split_input,    ///< the same of an input that every rank has whole
  embedding_rowwise,      ///< rows of an embedding table
  replicated_with_grad_allreduce,
  packed_colwise,  ///< of the experts' gate and up matrices in one: a part of each
  grouped_gemm,    ///< some of the experts, whole
  ep_router,       ///< what it decides about experts of other ranks is masked
  moe_tp_experts,  ///< results of experts are summed
};

/// A module, or a parameter, by its path below the language model ("*": any number), and its style.
struct ShardRule {
  std::string_view path;
  ShardStyle style;
};

namespace shard_rules {

using S = ShardStyle;

inline constexpr std::array attention{
    ShardRule{"layers.*.self_attn.q_proj", S::colwise}, ShardRule{"layers.*.self_attn.k_proj", S::colwise},
    ShardRule{"layers.*.self_attn.v_proj", S::colwise}, ShardRule{"layers.*.self_attn.o_proj", S::rowwise}};
inline constexpr std::array head_norms{ShardRule{"layers.*.self_attn.q_norm", S::replicated_with_grad_allreduce},
                                       ShardRule{"layers.*.self_attn.k_norm", S::replicated_with_grad_allreduce}};
inline constexpr std::array mlp{ShardRule{"layers.*.mlp.gate_proj", S::colwise},
                                ShardRule{"layers.*.mlp.up_proj", S::colwise},
                                ShardRule{"layers.*.mlp.down_proj", S::rowwise}};
inline constexpr std::array shared_mlp{ShardRule{"layers.*.mlp.shared_experts.gate_proj", S::colwise},
                                       ShardRule{"layers.*.mlp.shared_experts.up_proj", S::colwise},
                                       ShardRule{"layers.*.mlp.shared_experts.down_proj", S::rowwise}};
inline constexpr std::array packed_mlp{ShardRule{"layers.*.mlp.gate_up_proj", S::colwise_gather_output},
                                       ShardRule{"layers.*.mlp.down_proj", S::rowwise_split_input}};
inline constexpr std::array packed_attention{ShardRule{"layers.*.self_attn.qkv_proj", S::colwise_gather_output},
                                             ShardRule{"layers.*.self_attn.o_proj", S::rowwise_split_input}};
inline constexpr std::array divided_experts{ShardRule{"layers.*.mlp.experts.gate_up_proj", S::packed_colwise},
                                            ShardRule{"layers.*.mlp.experts.down_proj", S::rowwise},
                                            ShardRule{"layers.*.mlp.experts", S::moe_tp_experts}};
inline constexpr std::array own_experts{
    ShardRule{"layers.*.mlp.gate", S::ep_router}, ShardRule{"layers.*.mlp.experts.gate_up_proj", S::grouped_gemm},
    ShardRule{"layers.*.mlp.experts.down_proj", S::grouped_gemm}, ShardRule{"layers.*.mlp.experts", S::moe_tp_experts}};
inline constexpr std::array tied{ShardRule{"embed_tokens", S::embedding_rowwise}};
inline constexpr std::array head{ShardRule{"lm_head", S::colwise_gather_output}};

}  // namespace shard_rules

/// Groups of rules; a plan is a few of them.
using ShardRules = std::array<std::span<const ShardRule>, 6>;

/// The plans of a language model's config class.
struct ShardPlans {
  std::string_view type;  ///< its model_type
  ShardRules tensor{};    ///< base_model_tp_plan; none: it has no such plan
  ShardRules expert{};    ///< base_model_ep_plan
};

namespace shard_rules {

inline constexpr ShardRules dense{attention, mlp}, normed{attention, head_norms, mlp}, sparse{own_experts},
    packed{attention, packed_mlp};

/// configuration_<type>.py of transformers 5.17. Qwen3-VL's and Aria's mixtures leave their experts whole where
/// attention is divided.
inline constexpr std::array plans{
    ShardPlans{"aria_text", {attention, shared_mlp}},
    ShardPlans{"cohere", dense},
    ShardPlans{"cohere2", dense},
    ShardPlans{"cohere_compass_text", dense},
    ShardPlans{"exaone4", normed},
    ShardPlans{"gemma", dense},
    ShardPlans{"gemma2", dense},
    ShardPlans{"gemma3_text", normed},
    ShardPlans{"glm4", packed},
    ShardPlans{"glm4v_text", packed},
    ShardPlans{"glm_ocr_text", packed},
    ShardPlans{"granite", dense},
    ShardPlans{"granite4_vision_text", dense},
    ShardPlans{"llama", dense},
    ShardPlans{"ministral3", dense},
    ShardPlans{"mistral", dense},
    ShardPlans{"paddleocr_vl_text", dense},
    ShardPlans{"phi3", {packed_attention, packed_mlp}},
    ShardPlans{"phi4_multimodal", {packed_attention, packed_mlp}},
    ShardPlans{"qwen2", dense},
    ShardPlans{"qwen2_5_omni_text", dense},
    ShardPlans{"qwen2_5_vl_text", dense},
    ShardPlans{"qwen2_moe", dense, sparse},
    ShardPlans{"qwen2_vl_text", dense},
    ShardPlans{"qwen3", normed},
    ShardPlans{"qwen3_moe", {attention, head_norms, divided_experts, mlp}, sparse},
    ShardPlans{"qwen3_vl_moe_text", dense, sparse},
};

/// Types whose plans stand for modules that are not described here as parts.
inline constexpr std::array<std::string_view, 17> not_modelled{"deepseek_ocr2_text",
                                                               "deepseek_v3",
                                                               "diffusion_gemma_text",
                                                               "ernie4_5_vl_moe_text",
                                                               "gemma3n_text",
                                                               "gemma4_text",
                                                               "gemma4_unified_text",
                                                               "glm4v_moe_text",
                                                               "gpt_oss",
                                                               "llama4_text",
                                                               "minimax_m3_vl_text",
                                                               "mistral4",
                                                               "muse_glimmer_text",
                                                               "qwen3_5_text",
                                                               "qwen3_5_moe_text",
                                                               "qwen3_omni_moe_text",
                                                               "step3p5"};

}  // namespace shard_rules

/// Of this model_type, or nothing.
constexpr const ShardPlans* shard_plans(std::string_view type) {
  for (const ShardPlans& p : shard_rules::plans)
    if (p.type == type) return &p;
  return nullptr;
}

constexpr bool any_rules(const ShardRules& rules) { return !rules[0].empty(); }

/// Whether `path` names the module of scope s, or its parameter of that name: both from their ends, down to the
/// language model's own scope or the model's, whose names are not the same in every class.
inline bool names_module(std::string_view path, const Graph& g, ScopeId s, std::string_view parameter = {}) {
  const auto last = [&] {
    const std::size_t dot = path.rfind('.');
    const std::string_view word = dot == std::string_view::npos ? path : path.substr(dot + 1);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
    return word;
  };
  if (!parameter.empty() && last() != parameter) return false;
  while (!path.empty()) {
    const Scope& e = g.scopes[static_cast<std::size_t>(s)];
    if (e.part != Part::language) return false;
    const std::string_view word = last();
    const bool numbered = word == "*";
    if (numbered != (e.index != none) || (numbered ? last() : word) != e.name) return false;
    s = e.parent;
  }
  return true;
}

/// The style of a module, or of one of its parameters, under these rules.
inline ShardStyle style_of(const ShardRules& rules, const Graph& g, ScopeId s, std::string_view parameter = {}) {
  for (const auto& group : rules)
    for (const ShardRule& r : group)
      if (names_module(r.path, g, s, parameter)) return r.style;
  return ShardStyle::whole;
}

}  // namespace vlmest
