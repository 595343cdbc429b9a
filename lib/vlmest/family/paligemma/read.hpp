// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/paligemma/family.hpp>
#include <vlmest/family/paligemma/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/gemma_vision.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

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
  m.image_processor = image_processor::PaliGemma{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = f;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::PaliGemma&) {}
inline void read_image_keys(ProcessorKeys& k, image_processor::PaliGemma& rule) {
  read_square_keys(k, rule.image_size);
  k.same("image_seq_length", image_processor::square_patches(rule.image_size, rule.patch_size).count(),
         "vision_config");
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::PaliGemma& rule) {
  k.same("image_seq_length", image_processor::square_patches(rule.image_size, rule.patch_size).count(),
         "vision_config");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct PaliGemma {
  static constexpr std::string_view folder = "paligemma";
  static constexpr std::array types{json::ModelType{
      .type = "paligemma", .read = json::hf::read_paligemma, .recorder = json::RecorderInputs{"square.paligemma"}}};
  using Rules = json::Rules<image_processor::PaliGemma>;
};

}  // namespace vlmest::family
