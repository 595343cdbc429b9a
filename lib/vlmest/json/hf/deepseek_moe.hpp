// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <vlmest/json/hf/text.hpp>
#include <vlmest/nn/decoder/deepseek_moe.hpp>

namespace vlmest::json::hf {

/// Sizes of DeepSeek-V2's attention without latents, whose heads fill hidden_size, and of its experts: defaults of
/// models/deepseek_ocr2/configuration_deepseek_ocr2.py, DeepseekOcr2TextConfig, which layers are sparse left open.
inline DeepseekMoeConfig read_deepseek_experts(const Reader& r) {
  DeepseekMoeConfig d;
  d.layers = text_model(r, LlamaConfig{.vocab = 102400}, std::nullopt, std::nullopt);
  if (d.layers.hidden % d.layers.heads != 0)
    r.fail("num_attention_heads", std::to_string(d.layers.hidden) + " is not divisible by the heads",
           "check hidden_size and the number of heads");
  d.layers.head_dim = d.layers.hidden / d.layers.heads;
  d.layers.qkv_bias = d.layers.o_bias = r.boolean("attention_bias", false);
  d.layers.mlp_bias = r.boolean("mlp_bias", false);
  d.layers.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  MoeConfig& m = d.moe;
  m.hidden = d.layers.hidden;
  m.activation = d.layers.activation;
  m.inner = r.integer("moe_intermediate_size", 1407, 1, 1 << 24);
  m.experts = r.integer(r.either("n_routed_experts", "num_experts"), 64, 1, 1023);
  m.top_k = r.integer_required("num_experts_per_tok", 1, 1023);
  d.shared_experts = r.integer("n_shared_experts", d.shared_experts, 1, 1023);
  if (m.top_k > m.experts)
    r.fail("num_experts_per_tok", std::to_string(m.top_k) + " of " + std::to_string(m.experts) + " experts",
           "give at most n_routed_experts");
  const std::string method = r.string("topk_method", "greedy");
  d.grouped = method == "group_limited_greedy";
  if (!d.grouped && method != "greedy")
    r.fail("topk_method", "unknown '" + method.substr(0, 64) + "'", "known: greedy, group_limited_greedy");
  if (!d.grouped) return d;
  d.groups = r.integer_required("n_group", 1, 1023);
  d.top_groups = r.integer_required("topk_group", 1, 1023);
  if (m.experts % d.groups != 0 || d.top_groups > d.groups)
    r.fail("n_group",
           std::to_string(m.experts) + " experts in " + std::to_string(d.groups) + " groups, of which " +
               std::to_string(d.top_groups) + " are taken",
           "groups are equal, and topk_group is at most n_group");
  return d;
}

}  // namespace vlmest::json::hf
