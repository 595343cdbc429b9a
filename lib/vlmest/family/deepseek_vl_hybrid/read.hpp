// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/deepseek_vl_hybrid/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/sam.hpp>
#include <vlmest/json/processor/padded_square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// high_res_vision_config, which must be SAM's. Its first global layer is looked at, and its features have as many
/// positions as SigLIP's.
inline SamVision read_high_res_tower(const Reader& r) {
  if (const std::string type = r.string("model_type", "sam_vision_model"); type != "sam_vision_model")
    r.fail("model_type", "the vision tower '" + type.substr(0, 64) + "' of this type is not modelled",
           "known: sam_vision_model");
  SamVision d = read_sam(r);
  if (d.global_layers.empty() || d.global_layers.front() < 0 || d.global_layers.front() >= d.layers)
    r.fail("global_attn_indexes", "the first one names no layer of the tower, but its state is read",
           "name layers from 0 to num_hidden_layers - 1");
  return d;
}

/// model_type "deepseek_vl_hybrid": transformers 5.17,
/// models/deepseek_vl_hybrid/configuration_deepseek_vl_hybrid.py.
inline Vlm read_deepseek_vl_hybrid(const Reader& r) {
  const Reader t = r.object("text_config");
  DeepseekVlHybridFamily f;
  f.high_res = read_high_res_tower(r.object("high_res_vision_config"));
  f.vision = siglip_vision(r.object("vision_config"));
  f.language = read_decoder(t, t.string("model_type", "llama"));
  if (width(f.language) % 2 != 0)
    t.fail("hidden_size", "the aligner joins two halves of it", "give an even hidden_size");
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "deepseek_vl_hybrid"};
  m.image_processor = image_processor::PaddedSquare{
      .image_size = f.vision.image_size, .patch_size = f.vision.patch_size, .high_res_size = f.high_res.image_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct DeepseekVlHybrid {
  static constexpr std::string_view folder = "deepseek_vl_hybrid";
  static constexpr std::array types{json::ModelType{.type = "deepseek_vl_hybrid",
                                                    .read = json::hf::read_deepseek_vl_hybrid,
                                                    .recorder = json::RecorderInputs{"square.deepseek_vl_hybrid"}}};
  using Rules = json::Rules<image_processor::PaddedSquare>;
};

}  // namespace vlmest::family
