// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/nn/decoder/qwen3_5_text.hpp>

/// Qwen3.5's text model without experts: transformers 5.17, models/qwen3_5/configuration_qwen3_5.py, class
/// Qwen3_5TextConfig.
namespace vlmest::json::hf {

/// layer_types, or where it is absent a full layer behind every full_attention_interval - 1 linear ones
/// (Qwen3_5TextConfig.__post_init__).
inline std::vector<bool> full_layers(const Reader& t, std::int64_t layers) {
  const std::int64_t interval = t.integer("full_attention_interval", 4, 1, 1024);
  if (!t.given("layer_types")) {
    std::vector<bool> r;
    for (std::int64_t i = 0; i < layers; ++i) r.push_back((i + 1) % interval == 0);
    return r;
  }
  return marked_layers(t, "layer_types", layers, "linear_attention", "full_attention");
}

/// The linear layers' sizes.
inline DeltaNetConfig read_delta_net(const Reader& t, const LlamaConfig& layers) {
  DeltaNetConfig d{.hidden = layers.hidden, .activation = layers.activation};
  d.key_heads = t.integer("linear_num_key_heads", d.key_heads, 1, 1 << 16);
  d.value_heads = t.integer("linear_num_value_heads", d.value_heads, 1, 1 << 16);
  d.key_dim = t.integer("linear_key_head_dim", d.key_dim, 1, 1 << 16);
  d.value_dim = t.integer("linear_value_head_dim", d.value_dim, 1, 1 << 16);
  d.taps = t.integer("linear_conv_kernel_dim", d.taps, 2, 64);
  if (d.value_heads % d.key_heads != 0)
    t.fail("linear_num_value_heads",
           std::to_string(d.value_heads) + " value heads cannot share " + std::to_string(d.key_heads) + " key heads",
           "linear_num_value_heads must be a multiple of linear_num_key_heads");
  return d;
}

/// What transformers does not read though it would change the model: its classes always gate.
inline void check_output_gate(const Reader& t) {
  if (!t.boolean("attn_output_gate", true))
    t.fail("attn_output_gate", "transformers' class gates attention whatever this says", "leave it out");
}

/// What both text configs share; `d` holds the class's defaults.
inline Qwen35TextConfig qwen3_5_text(const Reader& t, Qwen35TextConfig d, std::int64_t kv_heads) {
  d.layers = text_model(t, d.layers, kv_heads, 256);
  read_qwen3_attention(t, d.layers);
  d.layers.attention_dropout = read_dropout(t, "attention_dropout", 0.0);
  d.layers.rotary_dim = read_rotary_dim(t, d.layers.head_dim, 0.25);
  d.linear = read_delta_net(t, d.layers);
  d.full = full_layers(t, d.layers.layers);
  d.sections = three_sections(t, d.sections);
  check_output_gate(t);
  return d;
}

/// Qwen3_5TextConfig.
inline Qwen35TextConfig read_qwen3_5_text(const Reader& t) { return qwen3_5_text(t, {}, 4); }

}  // namespace vlmest::json::hf
