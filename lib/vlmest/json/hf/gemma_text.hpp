// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/text.hpp>
#include <vlmest/nn/decoder/gemma.hpp>

/// Gemma's language models out of a Hugging Face config (transformers 5.17, models/gemma*/configuration_gemma*.py).
namespace vlmest::json::hf {

/// Sizes and heads; `d` holds the class's defaults, `activation` the key that the class reads.
inline GemmaConfig gemma(const Reader& r, GemmaConfig d, const char* activation) {
  d = text_model(r, std::move(d), d.kv_heads, d.head_dim, activation, "gelu_pytorch_tanh");
  d.attention_bias = r.boolean("attention_bias", false);
  d.causal = !r.boolean("use_bidirectional_attention", false);
  return d;
}

/// Window and types of the layers: layer_types, or every layer but each `pattern`-th slides. validate_architecture
/// wants whole heads whatever head_dim is.
inline void read_sliding(const Reader& r, GemmaConfig& d, std::int64_t pattern) {
  if (d.hidden % d.heads != 0)
    r.fail("num_attention_heads",
           "hidden_size " + std::to_string(d.hidden) + " is not divisible by " + std::to_string(d.heads) + " heads");
  if (r.is_null("sliding_window")) r.fail("sliding_window", "null, but the model has layers that slide");
  d.window = r.integer("sliding_window", 4096);
  d.sliding = sliding_layers(r, d.layers, pattern);
}

inline GemmaConfig read_gemma_config(const Reader& r) { return gemma(r, {}, "hidden_act"); }

inline GemmaConfig read_gemma2_config(const Reader& r) {
  GemmaConfig d =
      gemma(r, {.hidden = 2304, .intermediate = 9216, .layers = 26, .heads = 8, .kv_heads = 4, .sandwich = true},
            "hidden_activation");
  r.without_effect({"hidden_act", "sliding_window_size"});
  r.number("attn_logit_softcapping", 50.0);  // any number caps; null does not
  d.softcap = !r.is_null("attn_logit_softcapping");
  read_sliding(r, d, 2);
  return d;
}

/// A bidirectional text model halves its window. attn_logit_softcapping is in the config, but its attention does not
/// pass it on.
inline GemmaConfig read_gemma3_text_config(const Reader& r) {
  GemmaConfig d = gemma(r,
                        {.vocab = 262208,
                         .hidden = 2304,
                         .intermediate = 9216,
                         .layers = 26,
                         .heads = 8,
                         .kv_heads = 4,
                         .sandwich = true,
                         .qk_norm = true,
                         .rope_by_type = true},
                        "hidden_activation");
  read_sliding(r, d, r.integer("sliding_window_pattern", 6, 1, 1024));
  if (!d.causal) d.window = *d.window / 2 + 1;
  return d;
}

inline DecoderConfig read_gemma(const Reader& r) { return read_gemma_config(r); }
inline DecoderConfig read_gemma2(const Reader& r) { return read_gemma2_config(r); }
inline DecoderConfig read_gemma3_text(const Reader& r) { return read_gemma3_text_config(r); }

}  // namespace vlmest::json::hf
