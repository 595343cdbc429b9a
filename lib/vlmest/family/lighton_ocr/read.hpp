// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/lighton_ocr/family.hpp>
#include <vlmest/family/lighton_ocr/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/pixtral.hpp>
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
  m.image_processor = image_processor::LightOnOcr{.patch_size = f.vision.patch_size,
                                                  .longest_edge = f.vision.image_size,
                                                  .merge = f.projector.merge,
                                                  .cell = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::LightOnOcr& rule) {
  image.longest_edge(rule.longest_edge);
}
/// LightOnOcrProcessor passes nothing: the image processor's patch_size counts, 16 where the file does not say
/// (PixtralImageProcessor).
inline void read_image_keys(ProcessorKeys& k, image_processor::LightOnOcr& rule) {
  read_native_keys(k, rule);
  const ProcessorSize cell = k.size("patch_size");
  if (cell.given() && (!cell.height || cell.height != cell.width))
    k.fail("patch_size", "is no square", "give equal height and width");
  rule.cell = cell.height.value_or(16);
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::LightOnOcr& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("spatial_merge_size", rule.merge, "spatial_merge_size");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct LightOnOcr {
  static constexpr std::string_view folder = "lighton_ocr";
  static constexpr std::array types{json::ModelType{.type = "lighton_ocr",
                                                    .read = json::hf::read_lighton_ocr,
                                                    .recorder = json::RecorderInputs{"native.lighton_ocr"}}};
  using Rules = json::Rules<image_processor::LightOnOcr>;
};

}  // namespace vlmest::family
