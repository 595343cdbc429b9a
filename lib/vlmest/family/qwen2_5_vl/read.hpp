// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen2_5_vl/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen2_5_vl.hpp>
#include <vlmest/json/processor/qwen2_5_vl.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/qwen2_5_vl/configuration_qwen2_5_vl.py.
namespace vlmest::json::hf {

/// model_type "qwen2_5_vl".
inline Vlm read_qwen2_5_vl(const Reader& r) {
  Qwen2_5VlFamily f;
  f.vision = read_qwen2_5_tower(r.object("vision_config"), f.vision);
  f.language = read_qwen_vl_text(qwen_text(r));
  f.tied = qwen_tied(r);
  Vlm m{.type = "qwen2_5_vl"};
  m.image_processor = qwen2_5_processor(f.vision);
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen2_5Vl {
  static constexpr std::string_view folder = "qwen2_5_vl";
  static constexpr std::array types{json::ModelType{.type = "qwen2_5_vl",
                                                    .read = json::hf::read_qwen2_5_vl,
                                                    .recorder = json::RecorderInputs{"native.qwen2_vl", 448},
                                                    .text_part = "qwen2_5_vl_text"}};
  using Rules = json::Rules<image_processor::Qwen2_5Vl>;
};

}  // namespace vlmest::family
