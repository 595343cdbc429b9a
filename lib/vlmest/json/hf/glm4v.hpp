// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/glm_text.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/nn/decoder/glm4v_text.hpp>
#include <vlmest/nn/family/glm4v.hpp>
#include <vlmest/nn/vision/glm4v.hpp>
#include <vlmest/nn/vlm.hpp>

/// GLM-4.1V: transformers 5.17, models/glm4v/configuration_glm4v.py.
namespace vlmest::json::hf {

/// Glm4vVisionConfig.
inline Glm4vVision read_glm4v_tower(const Reader& v) {
  Glm4vVision d = qwen_tower(v, Glm4vVision{}, "hidden_size", "silu");
  d.intermediate = v.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.out_hidden = v.integer("out_hidden_size", d.out_hidden, 1, 1 << 20);
  d.image_size = v.side("image_size", d.image_size);
  d.attention_bias = v.boolean("attention_bias", d.attention_bias);
  if (d.patch_size > d.image_size) v.fail("patch_size", "larger than the image");
  return d;
}

/// Glm4vTextConfig. The attention's heads fill hidden_size, whatever head_dim says.
inline Glm4vTextConfig read_glm4v_text(const Reader& t) {
  const Glm4vTextConfig defaults;
  Glm4vTextConfig d = text_model(t, defaults, defaults.kv_heads, std::nullopt);
  check_heads_fill(t, d.hidden, d.heads, d.head_dim);
  d.rotary_dim = read_rotary_dim(t, d.head_dim, 1.0);
  d.sections = fit_sections(mrope_sections(t, {8, 12, 12}), d.rotary_dim / 2);
  return d;
}

/// model_type "glm4v".
inline Vlm read_glm4v(const Reader& r) {
  const Reader v = r.object("vision_config");
  Glm4vFamily f;
  f.vision = read_glm4v_tower(v);
  f.language = read_glm4v_text(qwen_text(r));
  f.tied = qwen_tied(r);
  if (f.vision.out_hidden != width(f.language))
    v.fail("out_hidden_size", "the merger must end in the language model's hidden_size");
  Vlm m{.type = "glm4v"};
  m.tokens =
      tokens::Glm4v{.patch_size = f.vision.patch_size, .merge = f.vision.merge, .temporal_patch_size = f.vision.frames};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf
