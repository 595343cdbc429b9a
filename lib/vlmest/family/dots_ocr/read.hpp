// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <vlmest/family/dots_ocr/family.hpp>
#include <vlmest/family/dots_ocr/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/pixel_budget.hpp>
#include <vlmest/nn/vlm.hpp>

/// dots.ocr by the files that its checkpoint brings. Copies that this follows: configuration_dots.py and
/// modeling_dots_vision.py, as49537023/dots_ocr weights/DotsOCR (commit a3e0f11, September 2025), whose rotation is
/// not the authors' and is that of RepnikovPavel/ocr src/dots_mocr/transformers_patch/modeling_dots_vision.py (commit
/// 054e87d), as vLLM's and SGLang's copies have it; modeling_dots_ocr.py, the latter's file of that name without what
/// it adds for transformers 5. Keys of the language model stand at the top, with the defaults of transformers'
/// Qwen2Config.
namespace vlmest::json::hf {

/// DotsVisionConfig.
inline DotsVision read_dots_vision(const Reader& v) {
  DotsVision d;
  v.without_effect(
      {"gradient_checkpointing", "init_merger_std", "is_causal"});  // is_causal: FlashAttention's call alone
  d.hidden = v.integer("embed_dim", d.hidden, 1, 1 << 20);
  d.out_hidden = v.integer("hidden_size", d.out_hidden, 1, 1 << 20);
  d.intermediate = v.integer("intermediate_size", d.intermediate, 1, 1 << 24);
  d.layers = v.layers("num_hidden_layers", d.layers);
  d.heads = v.integer("num_attention_heads", d.heads, 1, 1 << 16);
  d.channels = v.integer("num_channels", d.channels, 1, 1 << 10);
  d.patch_size = v.side("patch_size", d.patch_size);
  d.frames = v.side("temporal_patch_size", d.frames);
  d.merge = v.integer("spatial_merge_size", d.merge, 1, 64);
  d.bias = v.boolean("use_bias", d.bias);
  d.post_norm = v.boolean("post_norm", d.post_norm);
  divides(v, "num_attention_heads", d.hidden, d.heads);
  if (d.hidden / d.heads % 4 != 0)
    v.fail("num_attention_heads", "rotation over two axes needs a head size that is a multiple of 4");
  const std::string how = v.string("attn_implementation", name(d.attention));
  const auto known = value_of<DotsAttention>(how);
  if (!known)
    v.fail("attn_implementation", "'" + how.substr(0, 64) + "' is not modelled",
           "known: eager, eager_v2, sdpa, flash_attention_2");
  d.attention = *known;
  return d;
}

/// model_type "dots_ocr".
inline Vlm read_dots_ocr(const Reader& r) {
  const Reader v = r.object("vision_config");
  r.without_effect({"attention_bias"});  // Qwen2Attention has the biases of its projections in any case
  DotsOcrFamily f;
  f.vision = read_dots_vision(v);
  f.language = read_decoder(r, "qwen2");
  if (f.vision.out_hidden != width(f.language))
    v.fail("hidden_size", "the merger must end in the language model's hidden_size", std::to_string(width(f.language)));
  f.tied = r.boolean("tie_word_embeddings", false);
  Vlm m{.type = "dots_ocr"};
  m.image_processor = image_processor::DotsOcr{.patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::DotsOcr& rule) { image.budget(rule.budget); }
/// Qwen2VLImageProcessor, as preprocessor_config.json names it.
inline void read_image_keys(ProcessorKeys& k, image_processor::DotsOcr& rule, const FamilyTraits& t) {
  read_qwen_keys(k, rule, t.frames);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::DotsOcr&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct DotsOcr {
  static constexpr std::string_view folder = "dots_ocr";
  static constexpr std::array types{json::ModelType{
      .type = "dots_ocr", .read = json::hf::read_dots_ocr, .recorder = json::not_recorded, .remote_code = true}};
  using Rules = json::Rules<image_processor::DotsOcr>;
};

}  // namespace vlmest::family
