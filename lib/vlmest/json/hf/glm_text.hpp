// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/text.hpp>

/// GLM-4's language models out of a Hugging Face config: transformers 5.17, models/glm/configuration_glm.py and
/// models/glm4/configuration_glm4.py, which agree.
namespace vlmest::json::hf {

inline GlmConfig read_glm_config(const Reader& r) {
  const GlmConfig defaults;
  GlmConfig d = text_model(r, defaults, defaults.kv_heads, defaults.head_dim);
  d.qkv_bias = r.boolean("attention_bias", true);
  d.rotary_dim = read_rotary_dim(r, d.head_dim, 0.5);
  return d;
}
inline DecoderConfig read_glm(const Reader& r) { return read_glm_config(r); }
inline DecoderConfig read_glm4(const Reader& r) {
  GlmConfig d = read_glm_config(r);
  d.sandwich = true;
  return d;
}

}  // namespace vlmest::json::hf
