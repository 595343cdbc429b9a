// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/exaone4_5/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/exaone4.hpp>
#include <vlmest/json/hf/qwen2_5_vl.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/qwen2_5_vl.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/exaone4_5/configuration_exaone4_5.py.
namespace vlmest::json::hf {

/// Exaone4_5_VisionConfig: Qwen2.5-VL's keys and the heads of keys and values.
inline Qwen2_5VlVision read_exaone4_5_tower(const Reader& v) {
  Qwen2_5VlVision g = read_qwen2_5_tower(v);
  g.kv_heads = v.integer("num_key_value_heads", 8, 1, 1 << 16);
  if (g.heads % g.kv_heads != 0)
    v.fail("num_key_value_heads",
           std::to_string(g.heads) + " query heads cannot share " + std::to_string(g.kv_heads) + " key-value heads",
           "num_heads must be a multiple of num_key_value_heads");
  return g;
}

/// model_type "exaone4_5": text parts were first released as exaone4_5_text.
inline Vlm read_exaone4_5(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  if (const std::string text = t.string("model_type", "exaone4"); text != "exaone4" && text != "exaone4_5_text")
    t.fail("model_type", "'" + text + "' is not modelled", "known: exaone4");
  Exaone45Family f;
  f.vision = read_exaone4_5_tower(v);
  f.language = exaone4_config(t);
  f.tied = r.boolean("tie_word_embeddings", false);
  if (f.vision.out_hidden != f.language.hidden)
    v.fail("out_hidden_size", "the merger must end in the language model's hidden_size");
  Vlm m{.type = "exaone4_5"};
  m.image_processor = image_processor::Qwen2_5Vl{.patch_size = f.vision.patch_size,
                                                 .merge = f.vision.merge,
                                                 .temporal_patch_size = f.vision.frames,
                                                 .window_size = f.vision.window_size};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Exaone45 {
  static constexpr std::string_view folder = "exaone4_5";
  static constexpr std::array types{json::ModelType{.type = "exaone4_5",
                                                    .read = json::hf::read_exaone4_5,
                                                    .recorder = json::RecorderInputs{"native.exaone4_5", 448}}};
  using Rules = json::Rules<image_processor::Qwen2_5Vl>;
};

}  // namespace vlmest::family
