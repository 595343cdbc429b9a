// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <vlmest/json/hf/text.hpp>

/// Cohere's language models out of a Hugging Face config, with the defaults of their config classes.
namespace vlmest::json::hf {

/// models/cohere/configuration_cohere.py; Cohere2 has the same keys.
inline CohereConfig read_cohere_config(const Reader& r) {
  CohereConfig d = text_model(r, CohereConfig{}, std::nullopt, std::nullopt);
  d.attention_bias = r.boolean("attention_bias", false);
  return d;
}

inline DecoderConfig read_cohere(const Reader& r) {
  CohereConfig d = read_cohere_config(r);
  d.qk_norm = r.boolean("use_qk_norm", false);
  return d;
}

/// models/cohere2/configuration_cohere2.py: layer_types, or every sliding_window_pattern-th layer full. The model makes
/// a sliding mask whatever its layers are, so a window there must be.
inline DecoderConfig read_cohere2(const Reader& r) {
  CohereConfig d = read_cohere_config(r);
  // of checkpoints' own code, which the class does not name
  r.without_effect({"layer_switch", "order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
                    "use_embedding_sharing", "use_gated_activation", "use_parallel_block", "use_parallel_embedding"});
  if (r.is_null("sliding_window")) r.fail("sliding_window", "null, but the model cannot run without a window");
  d.window = r.integer("sliding_window", 4096);
  check_layer_types(r);
  d.sliding = sliding_layers(r, d.layers, r.given("layer_types") ? 1 : r.integer("sliding_window_pattern", 4, 1, 1024));
  return d;
}

}  // namespace vlmest::json::hf
