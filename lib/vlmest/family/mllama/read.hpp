// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/mllama/family.hpp>
#include <vlmest/family/mllama/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/text.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/nn/family/causal_lm.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// models/mllama/configuration_mllama.py, MllamaVisionConfig.
inline MllamaVision read_mllama_vision(const Reader& r) {
  MllamaVision d;
  d.heads = r.integer("attention_heads", d.heads, 1, 1 << 16);
  divides(r, "attention_heads", r.integer("hidden_size", d.hidden, 1, 1 << 20), d.heads);
  d = vit(r, d, "gelu");
  d.global_layers = r.integer("num_global_layers", d.global_layers, 0, 1024);
  d.max_tiles = r.integer("max_num_tiles", d.max_tiles, 1, 1024);
  if (r.given("supported_aspect_ratios")) {
    const auto& list = r.value()["supported_aspect_ratios"];
    if (!list.is_array() || list.empty() || list.size() > 65536)
      r.fail("supported_aspect_ratios", "expected a list of [rows, columns]");
    d.aspect_ratios = static_cast<std::int64_t>(list.size());
  } else if (d.max_tiles != 4) {
    r.fail("max_num_tiles", "must be 4 for the default aspect ratios", "give supported_aspect_ratios");
  }
  d.intermediate_layers = r.integers("intermediate_layers_indices", d.intermediate_layers);
  for (auto i : d.intermediate_layers)
    if (i >= d.layers || i < -d.layers)
      r.fail("intermediate_layers_indices", "the tower has " + std::to_string(d.layers) + " layers");
  if (r.integer("vision_output_dim", 7680) != d.output())
    r.fail("vision_output_dim", "the tower gives " + std::to_string(d.output()) + " channels",
           "it is hidden_size times one more than the intermediate layers");
  return d;
}

/// models/mllama/configuration_mllama.py, MllamaTextConfig. Cross-attention indices beyond the last layer are without
/// effect, as in MllamaTextModel.__init__.
inline MllamaText read_mllama_text(const Reader& r) {
  MllamaText d;
  d.base = text_model(r, d.base, 8, std::nullopt);
  d.cross.assign(static_cast<std::size_t>(d.base.layers), false);
  for (auto i : r.integers("cross_attention_layers", {3, 8, 13, 18, 23, 28, 33, 38}))
    if (i >= 0 && i < d.base.layers) d.cross[static_cast<std::size_t>(i)] = true;
  return d;
}

/// model_type "mllama".
inline Vlm read_mllama(const Reader& r) {
  MllamaFamily f{.vision = read_mllama_vision(r.object("vision_config")),
                 .language = read_mllama_text(r.object("text_config"))};
  Vlm m{.type = "mllama"};
  m.image_processor = image_processor::Mllama{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .max_tiles = f.vision.max_tiles};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

/// model_type "mllama_text_model": MllamaForCausalLM, with the cross-attention layers that it has and does not run. Its
/// embedding has rows that the head lacks: both cannot be one.
inline Vlm read_mllama_text_lm(const Reader& r) {
  MllamaTextFamily f;
  f.language = read_mllama_text(r);
  f.logits = LogitStep::widen;
  if (r.boolean("tie_word_embeddings", false))
    r.fail("tie_word_embeddings",
           "the embedding has " + std::to_string(MllamaText::extra_embeddings) + " rows more than the head",
           "set it to false");
  return text_only("mllama_text_model", std::move(f));
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::Mllama&) {}
/// The model's tile embeddings are for max_num_tiles, neither more nor fewer.
inline void read_image_keys(ProcessorKeys& k, image_processor::Mllama& rule) {
  k.must_be("do_resize", true);
  k.square("size", k.size("size"), rule.image_size);
  k.same("max_image_tiles", rule.max_tiles, "vision_config.max_num_tiles");
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Mllama&) {}

}  // namespace vlmest::json

namespace vlmest::family {

struct Mllama {
  static constexpr std::string_view folder = "mllama";
  static constexpr std::array types{
      json::ModelType{
          .type = "mllama", .read = json::hf::read_mllama, .recorder = json::RecorderInputs{"tiles.mllama"}},
      json::ModelType{
          .type = "mllama_text_model", .read = json::hf::read_mllama_text_lm, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Mllama>;
};

}  // namespace vlmest::family
