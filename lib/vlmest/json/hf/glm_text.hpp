// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <vlmest/json/hf/text.hpp>

/// GLM-4's language models out of a Hugging Face config: transformers 5.17, models/glm/configuration_glm.py and
/// models/glm4/configuration_glm4.py, which agree.
namespace vlmest::json::hf {

/// Channels of a head that rotate: partial_rotary_factor of the rope parameters, or beside them, of head_dim
/// (…RotaryEmbedding.compute_default_rope_parameters).
inline std::int64_t read_rotary_dim(const Reader& t, std::int64_t head_dim, double absent) {
  const Reader rope = t.object(t.given("rope_scaling") ? "rope_scaling" : "rope_parameters");
  const Reader& at = rope.given("partial_rotary_factor") ? rope : t;
  const double factor = at.number("partial_rotary_factor", absent);
  const auto dim =
      factor > 0.0 && factor <= 1.0 ? static_cast<std::int64_t>(static_cast<double>(head_dim) * factor) : 0;
  if (dim < 2 || dim % 2 != 0)
    at.fail("partial_rotary_factor",
            "must leave an even number of the " + std::to_string(head_dim) + " channels of a head");
  return dim;
}

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
