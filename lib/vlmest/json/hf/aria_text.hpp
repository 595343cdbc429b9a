// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/vision.hpp>

namespace vlmest::json::hf {

/// models/aria/configuration_aria.py, AriaTextConfig.
inline AriaTextConfig aria_text(const Reader& r) {
  AriaTextConfig d;
  d.layers = text_model(r, d.layers, std::nullopt, std::nullopt);
  divides(r, "num_attention_heads", d.layers.hidden, d.layers.heads);  // whatever head_dim says (validate_architecture)
  d.layers.qkv_bias = d.layers.o_bias = r.boolean("attention_bias", false);
  d.layers.mlp_bias = r.boolean("mlp_bias", false);
  d.layers.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.moe.hidden = d.layers.hidden;
  d.moe.inner = d.layers.intermediate;
  d.moe.experts = r.integer("moe_num_experts", d.moe.experts, 1, 1023);
  d.moe.top_k = r.integer("moe_topk", d.moe.top_k, 1, 1023);
  d.shared_experts = r.integer("moe_num_shared_experts", d.shared_experts, 1, 1023);
  if (d.moe.top_k > d.moe.experts)
    r.fail("moe_topk", std::to_string(d.moe.top_k) + " of " + std::to_string(d.moe.experts) + " experts",
           "give at most moe_num_experts");
  // Each is a product of its own in the graph.
  if (constexpr std::int64_t most = 1 << 16; d.moe.experts * d.layers.layers > most)
    r.fail("moe_num_experts",
           std::to_string(d.moe.experts) + " experts in each of " + std::to_string(d.layers.layers) + " layers",
           "give at most " + std::to_string(most) + " in all layers together");
  return d;
}
inline DecoderConfig read_aria_text(const Reader& r) { return aria_text(r); }

}  // namespace vlmest::json::hf
