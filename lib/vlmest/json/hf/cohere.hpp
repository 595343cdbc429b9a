// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>

/// Cohere's language models out of a Hugging Face config, with the defaults of their config classes.
namespace vlmest::json::hf {

/// What both generations share: transformers 5.17, models/cohere/configuration_cohere.py.
inline CohereConfig cohere(const Reader& r) {
  CohereConfig d;
  d.vocab = r.integer("vocab_size", d.vocab);
  d.hidden = r.integer("hidden_size", d.hidden, 1, 1 << 20);
  d.intermediate = r.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = r.layers("num_hidden_layers", d.layers);
  const Heads h = heads(r, d.hidden, d.heads, std::nullopt, std::nullopt);
  d.heads = h.heads;
  d.kv_heads = h.kv_heads;
  d.head_dim = h.head_dim;
  d.attention_bias = r.boolean("attention_bias", false);
  d.activation = parse_activation(r.string("hidden_act", "silu"));
  return d;
}

inline DecoderConfig read_cohere(const Reader& r) {
  CohereConfig d = cohere(r);
  d.qk_norm = r.boolean("use_qk_norm", false);
  return d;
}

/// models/cohere2/configuration_cohere2.py: layer_types, or every sliding_window_pattern-th layer full. The model makes
/// a sliding mask whatever its layers are, so a window there must be.
inline DecoderConfig read_cohere2(const Reader& r) {
  CohereConfig d = cohere(r);
  if (r.is_null("sliding_window")) r.fail("sliding_window", "null, but the model cannot run without a window");
  d.window = r.integer("sliding_window", 4096);
  if (r.given("layer_types")) {
    for (const auto& e : r.value()["layer_types"])
      if (!e.is_string() || (e != "sliding_attention" && e != "full_attention"))
        r.fail("layer_types", "expected \"sliding_attention\" or \"full_attention\"");
    d.sliding = sliding_layers(r, d.layers);
  } else {
    const std::int64_t pattern = r.integer("sliding_window_pattern", 4, 1, 1024);
    for (std::int64_t i = 1; i <= d.layers; ++i) d.sliding.push_back(i % pattern != 0);
  }
  return d;
}

}  // namespace vlmest::json::hf
