// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/diffusion_gemma/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/gemma4.hpp>
#include <vlmest/json/processor/gemma4.hpp>
#include <vlmest/nn/vlm.hpp>

/// DiffusionGemma out of a Hugging Face config: transformers 5.17,
/// models/diffusion_gemma/configuration_diffusion_gemma.py.
namespace vlmest::json::hf {

/// DiffusionGemmaTextConfig: full layers have no values of their own and take num_global_key_value_heads, whatever
/// attention_k_eq_v says, which is no key of the class; every layer has experts.
inline Gemma4TextConfig read_diffusion_gemma_text(const Reader& r) {
  check_part(r, "diffusion_gemma_text");
  Gemma4TextConfig d{.keys_as_values = true, .per_layer = 0};
  d = text_model(r, std::move(d), d.kv_heads, d.head_dim, "hidden_activation", "gelu_pytorch_tanh");
  d.attention_bias = r.boolean("attention_bias", false);
  d.attention_dropout = read_dropout(r, "attention_dropout", 0.0);
  read_gemma4_heads(r, d);
  read_gemma4_layer_types(r, d);
  check_gemma4_rope(r, d.sliding);
  d.blocks_of_images = read_blocks_of_images(r, "");
  read_gemma4_experts(r, d);
  if (r.is_null("final_logit_softcapping"))
    r.fail("final_logit_softcapping", "null, but the class divides by it", "leave the key out: 30");
  r.number("final_logit_softcapping", 30.0);
  return d;
}

/// model_type "diffusion_gemma".
inline Vlm read_diffusion_gemma(const Reader& r) {
  DiffusionGemmaFamily f;
  f.vision = read_gemma4_vision(required_vision(r));
  f.language = read_diffusion_gemma_text(r.object("text_config"));
  f.tied = r.boolean("tie_word_embeddings", true);
  if (r.is_null("canvas_length")) r.fail("canvas_length", "null, but generate() counts with it", "give 256");
  f.canvas = r.integer("canvas_length", f.canvas, 1, 1 << 20);
  Vlm m{.type = "diffusion_gemma"};
  m.image_processor = image_processor::Gemma4{.patch_size = f.vision.patch_size, .pool = f.vision.pool};
  m.native = {768, 768};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct DiffusionGemma {
  static constexpr std::string_view folder = "diffusion_gemma";
  static constexpr std::array types{json::ModelType{.type = "diffusion_gemma",
                                                    .read = json::hf::read_diffusion_gemma,
                                                    .recorder = json::RecorderInputs{"positioned.gemma4", 768},
                                                    .text_part = "diffusion_gemma_text"}};
  using Rules = json::Rules<image_processor::Gemma4>;
};

}  // namespace vlmest::family
