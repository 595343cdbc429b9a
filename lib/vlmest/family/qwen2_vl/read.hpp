// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen2_vl/family.hpp>
#include <vlmest/family/qwen2_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/qwen2_vl/configuration_qwen2_vl.py.
namespace vlmest::json::hf {

/// model_type "qwen2_vl". The merger's width is a key of its own: transformers builds any, and only a run shows whether
/// it is the language model's.
inline Vlm read_qwen2_vl(const Reader& r) {
  const Reader v = r.object("vision_config");
  Qwen2VlFamily f;
  f.vision = qwen_tower(v, f.vision, "embed_dim", "quick_gelu");
  f.vision.mlp_ratio = v.integer("mlp_ratio", f.vision.mlp_ratio, 1, 1 << 10);
  f.vision.out_hidden = v.integer("hidden_size", f.vision.out_hidden, 1, 1 << 20);
  f.language = read_qwen_vl_text(qwen_text(r));
  f.tied = qwen_tied(r);
  Vlm m{.type = "qwen2_vl"};
  m.image_processor = image_processor::Qwen2Vl{
      .patch_size = f.vision.patch_size, .merge = f.vision.merge, .temporal_patch_size = f.vision.frames};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Qwen2Vl& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::Qwen2Vl& rule, const FamilyTraits& t) {
  read_qwen_keys(k, rule, t.frames);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Qwen2Vl&) {}
inline void read_video_keys(ProcessorKeys& k, image_processor::Qwen2Vl& rule) {
  read_qwen_video_keys(k, rule, qwen2_video_class, true);
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Qwen2Vl {
  static constexpr std::string_view folder = "qwen2_vl";
  static constexpr std::array types{json::ModelType{.type = "qwen2_vl",
                                                    .read = json::hf::read_qwen2_vl,
                                                    .recorder = json::RecorderInputs{"native.qwen2_vl", 448},
                                                    .text_part = "qwen2_vl_text"}};
  using Rules = json::Rules<image_processor::Qwen2Vl>;
};

}  // namespace vlmest::family
