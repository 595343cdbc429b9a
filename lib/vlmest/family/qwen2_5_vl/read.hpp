// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen2_5_vl/family.hpp>
#include <vlmest/family/qwen2_5_vl/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/qwen2_5_vl/configuration_qwen2_5_vl.py.
namespace vlmest::json::hf {

/// model_type "qwen2_5_vl".
inline Vlm read_qwen2_5_vl(const Reader& r) {
  const Reader v = r.object("vision_config");
  Qwen2_5VlFamily f;
  f.vision = qwen_tower(v, f.vision, "hidden_size", "silu");
  Qwen2_5VlVision& g = f.vision;
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.window_size = v.integer("window_size", g.window_size, g.patch_size * g.merge, 1 << 20);
  g.full_attention = v.integers("fullatt_block_indexes", g.full_attention);  // those above the last layer match none
  for (auto i : g.full_attention)
    if (i < 0) v.fail("fullatt_block_indexes", "layers count from 0");
  g.out_hidden = v.integer("out_hidden_size", g.out_hidden, 1, 1 << 20);
  f.language = read_qwen_vl_text(qwen_text(r));
  f.tied = qwen_tied(r);
  Vlm m{.type = "qwen2_5_vl"};
  m.image_processor = image_processor::Qwen2_5Vl{
      .patch_size = g.patch_size, .merge = g.merge, .temporal_patch_size = g.frames, .window_size = g.window_size};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Qwen2_5Vl& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::Qwen2_5Vl& rule, const FamilyTraits& t) {
  read_qwen_keys(k, rule, t.frames);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Qwen2_5Vl&) {}
inline void read_video_keys(ProcessorKeys& k, image_processor::Qwen2_5Vl& rule) {
  read_qwen_video_keys(k, rule, qwen2_video_class, true);
}

}  // namespace vlmest::json

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
