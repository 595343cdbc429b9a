// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/mistral3/family.hpp>
#include <vlmest/family/mistral3/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/pixtral.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "mistral3": transformers 5.17, models/mistral3/configuration_mistral3.py. Without a vision_config the
/// tower is Pixtral's with patches of 14 at 1540 pixels, without a text_config the language model is Mistral Small's.
inline Vlm read_mistral3(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  Mistral3Family f;
  if (const std::string tower = v.string("model_type", "pixtral"); tower != "pixtral")
    v.fail("model_type", "'" + tower + "' takes no image sizes, which mistral3 hands to its tower", "known: pixtral");
  f.vision = r.given("vision_config") ? pixtral_vision(v) : PixtralVision{.image_size = 1540, .patch_size = 14};
  f.language = r.given("text_config")
                   ? read_decoder(t, t.string("model_type", "mistral"))
                   : DecoderConfig(LlamaConfig{
                         .vocab = 131072, .hidden = 5120, .intermediate = 32768, .layers = 40, .kv_heads = 8});
  const auto layers = r.integers("vision_feature_layer", {-1});
  if (layers.size() != 1)
    r.fail("vision_feature_layer", "the projector's norm takes one hidden state", "name one layer");
  f.feature_layer = layers.front();
  check_feature_layer(r, f.feature_layer, f.vision.layers);
  f.projector = {.in = f.vision.hidden,
                 .out = width(f.language),
                 .merge = r.integer("spatial_merge_size", 2, 1, 64),
                 .activation = parse_activation(r.string("projector_hidden_act", "gelu")),
                 .bias = r.boolean("multimodal_projector_bias", false)};
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "mistral3"};
  m.image_processor = image_processor::Mistral3{
      .patch_size = f.vision.patch_size, .longest_edge = f.vision.image_size, .merge = f.projector.merge};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Mistral3& rule) {
  image.longest_edge(rule.longest_edge);
}
/// As Pixtral's: patch_size of the file does not count.
inline void read_image_keys(ProcessorKeys& k, image_processor::Mistral3& rule) {
  read_native_keys(k, rule);
  k.ignore({"patch_size"});
}
inline void read_outer_keys(ProcessorKeys& k, image_processor::Mistral3& rule) {
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("spatial_merge_size", rule.merge, "spatial_merge_size");
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Mistral3 {
  static constexpr std::string_view folder = "mistral3";
  static constexpr std::array types{json::ModelType{
      .type = "mistral3", .read = json::hf::read_mistral3, .recorder = json::RecorderInputs{"native.mistral3"}}};
  using Rules = json::Rules<image_processor::Mistral3>;
};

}  // namespace vlmest::family
