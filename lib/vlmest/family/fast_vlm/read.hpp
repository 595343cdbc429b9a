// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <vlmest/family/fast_vlm/family.hpp>
#include <vlmest/family/fast_vlm/read_vision.hpp>
#include <vlmest/family/fast_vlm/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/nn/vlm.hpp>

/// FastVLM out of a Hugging Face config: transformers 5.17, models/fast_vlm/configuration_fast_vlm.py.
namespace vlmest::json::hf {

/// What the class puts in the place of a part that is missing.
inline const nlohmann::json& default_fast_vlm_part(const char* key) {
  static const nlohmann::json parts = nlohmann::json::parse(R"({
    "vision_config": {"architecture": "fastvit_mci3", "hidden_size": 3072, "model_args": {"inference_mode": true}},
    "text_config": {"hidden_size": 3584, "vocab_size": 152128, "intermediate_size": 18944, "num_attention_heads": 28,
                    "num_key_value_heads": 4, "num_hidden_layers": 28}})");
  return parts.at(key);
}

/// model_type "fast_vlm".
inline Vlm read_fast_vlm(const Reader& r) {
  const auto part = [&](const char* key) {
    const Reader given = r.object(key);
    return r.given(key) ? given : Reader(default_fast_vlm_part(key), given);
  };
  if (const std::string select = r.string("vision_feature_select_strategy", "full"); select != "full")
    r.fail("vision_feature_select_strategy", "'" + select.substr(0, 64) + "': the class takes no other than full",
           "full");
  if (r.given("vision_feature_layer") && r.value()["vision_feature_layer"] != -1)
    r.fail("vision_feature_layer", "the class takes no other than -1", "-1");
  const Reader t = part("text_config");
  FastVlmFamily f;
  f.vision = read_fastvit(part("vision_config"));
  f.language = read_decoder(t, t.string("model_type", "qwen2"));
  f.projector = {.in = f.vision.out,
                 .out = width(f.language),
                 .activation = parse_activation(r.string("projector_hidden_act", "gelu")),
                 .bias = r.boolean("multimodal_projector_bias", true)};
  f.tied = r.boolean("tie_word_embeddings", false) || t.boolean("tie_word_embeddings", false);
  image_processor::FastVlm rule;
  rule.patch_size = pixels_of_feature(f.vision);
  Vlm m{.type = "fast_vlm"};
  m.image_processor = rule;
  m.native = {rule.image_size, rule.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage&, image_processor::FastVlm&) {}
/// CLIP's: the shorter side at `size`, then cut to `crop_size`, a square of any size.
inline void read_image_keys(ProcessorKeys& k, image_processor::FastVlm& rule) {
  if (const ProcessorSize crop = k.size("crop_size"); crop.given()) {
    rule.image_size = crop.height.value_or(rule.image_size);
    k.square("crop_size", crop, rule.image_size);
    if (rule.image_size % rule.patch_size != 0)
      k.fail("crop_size", std::to_string(rule.image_size) + " pixels are no whole tokens",
             "a multiple of " + std::to_string(rule.patch_size));
  }
  read_square_keys(k, rule.image_size);
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::FastVlm& rule) { read_tower_keys(k, rule); }

}  // namespace vlmest::json

namespace vlmest::family {

struct FastVlm {
  static constexpr std::string_view folder = "fast_vlm";
  static constexpr std::array types{json::ModelType{.type = "fast_vlm",
                                                    .read = json::hf::read_fast_vlm,
                                                    .recorder = json::RecorderInputs{"square.fast_vlm", 1024},
                                                    .own_code = "llava_qwen2"}};
  using Rules = json::Rules<image_processor::FastVlm>;
};

}  // namespace vlmest::family
