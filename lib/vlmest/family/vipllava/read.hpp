// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/vipllava/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/llava_parts.hpp>
#include <vlmest/json/processor/square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "vipllava": transformers 5.17, models/vipllava/configuration_vipllava.py. Without a vision_config the
/// tower is CLIP-L/14 at 336 pixels, without a text_config the language model is Llama. The model drops the tower's
/// first token, so the tower must have a class token.
inline Vlm read_vipllava(const Reader& r) {
  const ClipVision clip{
      .hidden = 1024, .intermediate = 4096, .layers = 24, .heads = 16, .image_size = 336, .patch_size = 14};
  const LlavaParts parts = read_llava_parts(r, clip, "llama", -2, "default");
  const TowerFacts g = facts(parts.vision);
  if (!g.class_token)
    r.object("vision_config").fail("model_type", "this tower has no class token, which the model drops");
  const char* const key = "vision_feature_layers";
  VipLlavaFamily f{.vision = parts.vision, .projector = parts.projector, .language = parts.language};
  f.feature_layers = r.integers(key, f.feature_layers);
  f.layer_list = !r.given(key) || r.value()[key].is_array();
  f.tied = r.boolean("tie_word_embeddings", false);  // the text_config's is not asked here
  if (f.feature_layers.empty()) r.fail(key, "the list is empty");
  for (const auto layer : f.feature_layers) check_feature_layer(r, layer, g.layers, key);
  f.projector.in = checked_mul(g.hidden, static_cast<std::int64_t>(f.feature_layers.size()));
  f.projector.bias = true;
  Vlm m{.type = "vipllava"};
  m.image_processor =
      image_processor::Llava{.image_size = g.image_size, .patch_size = g.patch_size, .class_token = true};
  m.native = {g.image_size, g.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct VipLlava {
  static constexpr std::string_view folder = "vipllava";
  static constexpr std::array types{json::ModelType{
      .type = "vipllava", .read = json::hf::read_vipllava, .recorder = json::RecorderInputs{"square.llava"}}};
  using Rules = json::Rules<image_processor::Llava>;
};

}  // namespace vlmest::family
