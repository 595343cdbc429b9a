// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/gemma_text.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/family/paligemma.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// The vision_config of a family that is built on SigLIP.
inline SiglipVision read_siglip_only(const Reader& v) {
  const std::string type = v.string("model_type", "siglip_vision_model");
  if (type != "siglip_vision_model")
    v.fail("model_type", "'" + type + "' is not supported here", "known: siglip_vision_model");
  return std::get<SiglipVision>(read_siglip(v));
}

/// Whether the placeholder of images (image_token_id, formerly image_token_index) lies outside the vocabulary.
inline bool read_placeholder_outside(const Reader& r, std::int64_t absent, std::int64_t vocab) {
  return r.integer(r.given("image_token_id") ? "image_token_id" : "image_token_index", absent, 0) >= vocab;
}

/// model_type "paligemma": transformers 5.17, models/paligemma/configuration_paligemma.py. Attention goes both ways
/// unless the text_config says otherwise.
inline Vlm read_paligemma(const Reader& r) {
  PaliGemmaFamily f;
  f.vision = r.given("vision_config") ? read_siglip_only(r.object("vision_config"))
                                      : SiglipVision{.hidden = 1152,
                                                     .intermediate = 4096,
                                                     .layers = 27,
                                                     .heads = 16,
                                                     .image_size = 224,
                                                     .patch_size = 14,
                                                     .head = false};
  const Reader t = r.object("text_config");
  if (!r.given("text_config")) {
    f.language = {.vocab = r.integer("vocab_size", 257152),
                  .hidden = 2048,
                  .intermediate = 16384,
                  .layers = 18,
                  .heads = 8,
                  .kv_heads = 1};
  } else if (const std::string type = t.string("model_type", "gemma"); type == "gemma") {
    f.language = read_gemma_config(t);
  } else if (type == "gemma2") {
    f.language = read_gemma2_config(t);
  } else {
    t.fail("model_type", "'" + type + "' is not supported here", "known: gemma, gemma2");
  }
  f.language.causal = !t.boolean("use_bidirectional_attention", true);
  const std::int64_t projected = r.integer("projection_dim", 2048);
  if (projected != f.language.hidden)
    r.fail("projection_dim",
           std::to_string(projected) + ", but the language model is " + std::to_string(f.language.hidden) + " wide",
           "both must be equal");
  f.tied = r.boolean("tie_word_embeddings", true);
  f.placeholder_outside = read_placeholder_outside(r, 256000, f.language.vocab);
  Vlm m{.type = "paligemma"};
  m.tokens = tokens::PaliGemma{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf
