// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/deepseek_vl/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/decoder.hpp>
#include <vlmest/json/hf/vision.hpp>
#include <vlmest/json/processor/padded_square.hpp>
#include <vlmest/nn/vlm.hpp>

namespace vlmest::json::hf {

/// model_type "deepseek_vl": transformers 5.17, models/deepseek_vl/configuration_deepseek_vl.py.
inline Vlm read_deepseek_vl(const Reader& r) {
  const Reader t = r.object("text_config");
  DeepseekVlFamily f;
  f.vision = siglip_vision(r.object("vision_config"));
  f.language = read_decoder(t, t.string("model_type", "llama"));
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "deepseek_vl"};
  m.image_processor =
      image_processor::PaddedSquare{.image_size = f.vision.image_size, .patch_size = f.vision.patch_size};
  m.native = {f.vision.image_size, f.vision.image_size};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct DeepseekVl {
  static constexpr std::string_view folder = "deepseek_vl";
  static constexpr std::array types{json::ModelType{.type = "deepseek_vl",
                                                    .read = json::hf::read_deepseek_vl,
                                                    .recorder = json::RecorderInputs{"square.deepseek_vl"}}};
  using Rules = json::Rules<image_processor::PaddedSquare>;
};

}  // namespace vlmest::family
