// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/text.hpp>

namespace vlmest::json::hf {

/// models/gpt_oss/configuration_gpt_oss.py: the first layer slides and every other one after it. The model makes a
/// sliding mask whatever its layers are, so a window there must be.
inline DecoderConfig read_gpt_oss(const Reader& r) {
  GptOssConfig d = text_model(r, GptOssConfig{}, 8, 64);
  d.attention_bias = r.boolean("attention_bias", true);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  d.moe.hidden = d.hidden;
  d.moe.inner = d.intermediate;
  d.moe.experts = r.integer(r.either("num_local_experts", "num_experts"), d.moe.experts, 1, 1023);
  d.moe.top_k = r.integer("num_experts_per_tok", d.moe.top_k, 1, 1023);
  if (d.moe.top_k > d.moe.experts)
    r.fail("num_experts_per_tok", std::to_string(d.moe.top_k) + " of " + std::to_string(d.moe.experts) + " experts",
           "give at most num_local_experts");
  if (r.is_null("sliding_window")) r.fail("sliding_window", "null, but the model cannot run without a window");
  d.window = r.integer("sliding_window", 128);
  check_layer_types(r);
  d.sliding = sliding_layers(r, d.layers, [](std::int64_t i) { return i % 2 == 0; });
  return d;
}

}  // namespace vlmest::json::hf
