// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/paddleocr_vl/family.hpp>
#include <vlmest/family/paddleocr_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/pixel_budget.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/paddleocr_vl/configuration_paddleocr_vl.py.
namespace vlmest::json::hf {

/// PaddleOCRTextConfig.
inline QwenVlTextConfig read_paddleocr_text(const Reader& t) {
  QwenVlTextConfig d;
  d.layers = text_model(
      t,
      LlamaConfig{
          .vocab = 103424, .hidden = 1024, .intermediate = 3072, .layers = 18, .heads = 16, .project_first = true},
      2, 128);
  d.layers.qkv_bias = d.layers.o_bias = d.layers.mlp_bias = t.boolean("use_bias", false);
  d.sections = fit_sections(mrope_sections(t, d.sections), d.layers.head_dim / 2);
  return d;
}

/// PaddleOCRVisionConfig.
inline PaddleOcrVision read_paddleocr_tower(const Reader& v) {
  PaddleOcrVision g = vit(v, PaddleOcrVision{}, "gelu_pytorch_tanh");
  g.merge = v.integer("spatial_merge_size", g.merge, 1, 64);
  if (g.hidden / g.heads % 4 != 0)
    v.fail("num_attention_heads", "rotation over two axes needs a head size that is a multiple of 4");
  return g;
}

/// model_type "paddleocr_vl". The text keys may stand beside vision_config; the head is tied where either part says so,
/// and the text part does by default.
inline Vlm read_paddleocr_vl(const Reader& r) {
  PaddleOcrFamily f;
  f.vision = read_paddleocr_tower(r.object("vision_config"));
  f.language = read_paddleocr_text(qwen_text(r));
  f.projector = {.in = f.vision.hidden, .out = width(f.language), .merge = f.vision.merge};
  f.tied = r.boolean("tie_word_embeddings", true) || r.object("text_config").boolean("tie_word_embeddings", true);
  Vlm m{.type = "paddleocr_vl"};
  m.image_processor = image_processor::PaddleOcr{.patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {672, 672};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::PaddleOcr& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::PaddleOcr& rule) {
  read_single_frame_keys(k, rule);
  read_budget(k, rule.budget, {384 * 384, 1536 * 1536}, true);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::PaddleOcr&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct PaddleOcrVl {
  static constexpr std::string_view folder = "paddleocr_vl";
  static constexpr std::array types{json::ModelType{.type = "paddleocr_vl",
                                                    .read = json::hf::read_paddleocr_vl,
                                                    .recorder = json::RecorderInputs{"native.paddleocr_vl", 672},
                                                    .text_part = "paddleocr_vl_text"}};
  using Rules = json::Rules<image_processor::PaddleOcr>;
};

}  // namespace vlmest::family
