// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/got_ocr2/family.hpp>
#include <vlmest/family/got_ocr2/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/sam.hpp>
#include <vlmest/json/processor/tiles.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "got_ocr2": transformers 5.17, models/got_ocr2/configuration_got_ocr2.py, whose defaults are the released
/// model. GotOcr2PreTrainedModel has no version for torch's fused attention; the language model beneath it does.
inline Vlm read_got_ocr2(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  GotOcr2Family f;
  f.vision = read_sam(v, {.has_sdpa = false}, false);
  f.language = r.given("text_config") ? read_decoder(t, t.string("model_type", "qwen2"))
                                      : DecoderConfig(LlamaConfig{.vocab = 151860,
                                                                  .hidden = 1024,
                                                                  .intermediate = 2816,
                                                                  .layers = 24,
                                                                  .heads = 16,
                                                                  .kv_heads = 16,
                                                                  .head_dim = 64,
                                                                  .qkv_bias = true});
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "got_ocr2"};
  m.image_processor = image_processor::GotOcr2{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::GotOcr2& rule) { read_tiles(image, rule); }
/// GotOcr2Processor passes crop_to_patches=False, min_patches=1 and max_patches=12 to every call, which comes before
/// the file (transformers 5.17 processing_got_ocr2.py, _defaults).
inline void read_image_keys(ProcessorKeys& k, image_processor::GotOcr2& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.ignore({"min_patches", "max_patches"});
  if (k.boolean("crop_to_patches", false))
    k.note("crop_to_patches is true, but the processor passes false to every call: pictures are not cut");
}
inline void read_outer_keys(ProcessorKeys&, image_processor::GotOcr2&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct GotOcr2 {
  static constexpr std::string_view folder = "got_ocr2";
  static constexpr std::array types{json::ModelType{
      .type = "got_ocr2", .read = json::hf::read_got_ocr2, .recorder = json::RecorderInputs{"square.got_ocr2"}}};
  using Rules = json::Rules<image_processor::GotOcr2>;
};

}  // namespace vlmest::family
