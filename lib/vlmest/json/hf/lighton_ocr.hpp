// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/family/lighton_ocr.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "lighton_ocr": transformers 5.17, models/lighton_ocr/configuration_lighton_ocr.py, whose defaults are the
/// parts of the model of 1B parameters.
inline Vlm read_lighton_ocr(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  LightOnOcrFamily f;
  if (const std::string tower = v.string("model_type", "pixtral"); tower != "pixtral")
    v.fail("model_type", "'" + tower + "' takes no image sizes, which lighton_ocr hands to its tower",
           "known: pixtral");
  f.vision = r.given("vision_config") ? pixtral_vision(v) : PixtralVision{.image_size = 1540, .patch_size = 14};
  f.language = r.given("text_config") ? read_decoder(t, t.string("model_type", "qwen3"))
                                      : DecoderConfig(LlamaConfig{.vocab = 151936,
                                                                  .hidden = 1024,
                                                                  .intermediate = 3072,
                                                                  .layers = 28,
                                                                  .heads = 16,
                                                                  .kv_heads = 8,
                                                                  .head_dim = 128,
                                                                  .qk_norm = true});
  f.projector = {.in = f.vision.hidden, .out = width(f.language), .merge = r.integer("spatial_merge_size", 2, 1, 64)};
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "lighton_ocr"};
  m.tokens = tokens::LightOnOcr{.patch_size = f.vision.patch_size,
                                .longest_edge = f.vision.image_size,
                                .merge = f.projector.merge,
                                .cell = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf
