// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <vlmest/json/hf/text.hpp>

/// Llama 4's language model out of a Hugging Face config: transformers 5.17, models/llama4/configuration_llama4.py,
/// Llama4TextConfig.
namespace vlmest::json::hf {

/// no_rope_layers: a number for each layer, zero where it has no positions; an empty list means none. Without, every
/// no_rope_layer_interval-th layer has none. The class counts by the interval whatever the list says.
inline std::vector<bool> read_rotary_layers(const Reader& r, std::int64_t layers) {
  const std::int64_t interval = r.integer("no_rope_layer_interval", 4, 1, 1 << 16);
  const std::vector<std::int64_t> given = r.integers("no_rope_layers", {});
  std::vector<bool> rotary;
  if (given.empty()) {
    for (std::int64_t i = 1; i <= layers; ++i) rotary.push_back(i % interval != 0);
    return rotary;
  }
  // Of a list that is longer the class makes as many layer_types, and refuses those.
  const auto count = static_cast<std::int64_t>(given.size());
  if (count < layers || (count > layers && !r.given("layer_types")))
    r.fail("no_rope_layers", "expected one entry for each of the " + std::to_string(layers) + " layers");
  for (std::int64_t i = 0; i < layers; ++i) rotary.push_back(given[static_cast<std::size_t>(i)] != 0);
  return rotary;
}

/// moe_layers, of which those beyond the last layer are without effect; absent: every interleave_moe_layer_step-th.
inline std::vector<bool> read_expert_layers(const Reader& r, std::int64_t layers) {
  std::vector<bool> sparse(static_cast<std::size_t>(layers), false);
  const std::int64_t step = r.integer("interleave_moe_layer_step", 1, 1, 1 << 16);
  std::vector<std::int64_t> every;
  for (std::int64_t i = step - 1; i < layers; i += step) every.push_back(i);
  for (const std::int64_t i : r.integers("moe_layers", std::move(every)))
    if (i >= 0 && i < layers) sparse[static_cast<std::size_t>(i)] = true;
  return sparse;
}

inline Llama4Config llama4_text(const Reader& r) {
  Llama4Config d = text_model(r, Llama4Config{}, 8, 128);
  r.without_effect({"attn_scale", "floor_scale", "for_llm_compressor"});
  d.dense = r.integer("intermediate_size_mlp", d.dense, 1, 1 << 24);
  d.attention_bias = r.boolean("attention_bias", d.attention_bias);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.qk_norm = r.boolean("use_qk_norm", d.qk_norm);
  if (r.given("attn_temperature_tuning") && r.value()["attn_temperature_tuning"].is_number())
    r.fail("attn_temperature_tuning", "a number, as files for transformers 4 have it",
           "the class takes true or false: 4 means true");
  d.temperature = r.boolean("attn_temperature_tuning", d.temperature);
  check_static_rope(r);
  d.moe.hidden = d.hidden;
  d.moe.inner = d.moe.shared = d.intermediate;
  d.moe.activation = d.activation;
  d.moe.experts = r.integer("num_local_experts", d.moe.experts, 1, 1 << 16);
  d.moe.top_k = r.integer("num_experts_per_tok", d.moe.top_k, 1, 1 << 16);
  if (d.moe.top_k > d.moe.experts)
    r.fail("num_experts_per_tok", std::to_string(d.moe.top_k) + " of " + std::to_string(d.moe.experts) + " experts",
           "give at most num_local_experts");
  if (r.is_null("attention_chunk_size"))
    r.fail("attention_chunk_size", "null, but the model makes a chunked mask whatever its layers are", "give a chunk");
  // Of a chunk of one token the cache would keep everything, and the mask nothing (DynamicSlidingWindowLayer).
  d.chunk = r.integer("attention_chunk_size", d.chunk, 2);
  d.rotary = read_rotary_layers(r, d.layers);
  d.sparse = read_expert_layers(r, d.layers);
  d.chunked = r.given("layer_types") ? marked_layers(r, "layer_types", d.layers, "full_attention", "chunked_attention")
                                     : d.rotary;
  return d;
}
inline DecoderConfig read_llama4_text(const Reader& r) { return llama4_text(r); }

}  // namespace vlmest::json::hf
