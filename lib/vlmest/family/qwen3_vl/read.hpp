// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen3_vl/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/nn/vlm.hpp>

/// Qwen3-VL, dense and with experts, and Cosmos 3: transformers 5.17, models/qwen3_vl/configuration_qwen3_vl.py and
/// models/qwen3_vl_moe/configuration_qwen3_vl_moe.py.
namespace vlmest::json::hf {

/// Qwen3VLTextConfig.
inline Qwen3VlTextConfig read_qwen3_vl_text(const Reader& t) {
  Qwen3VlTextConfig d;
  d.layers = text_model(t, d.layers, 32, 128);
  read_qwen3_attention(t, d.layers);
  d.sections = three_sections(t, d.sections);
  return d;
}

/// Qwen3VLMoeTextConfig.
inline Qwen3VlTextConfig read_qwen3_vl_moe_text(const Reader& t) {
  Qwen3VlTextConfig d;
  t.without_effect({"norm_topk_prob"});  // the router always does
  d.layers = {.vocab = 151936,
              .hidden = 2048,
              .intermediate = 5632,
              .layers = 24,
              .heads = 16,
              .kv_heads = 16,
              .head_dim = 128,
              .qk_norm = true};
  d.layers = text_model(t, d.layers, 16, std::nullopt);
  read_qwen3_attention(t, d.layers);
  d.sections = three_sections(t, d.sections);
  d.moe = read_experts(t, {.hidden = d.layers.hidden, .activation = d.layers.activation}, 1408, 60, 4);
  d.sparse = sparse_layers(t, d.layers.layers, d.moe);
  return d;
}

inline Vlm qwen3_vl(const Reader& r, const char* type, Qwen3VlTextConfig language) {
  return around_qwen3_tower<Qwen3VlFamily>(r, type, read_qwen3_vl_vision(r.object("vision_config")),
                                           std::move(language));
}

/// model_type "qwen3_vl".
inline Vlm read_qwen3_vl(const Reader& r) {
  return qwen3_vl(r, "qwen3_vl", read_qwen3_vl_text(r.object("text_config")));
}

/// model_type "qwen3_vl_moe".
inline Vlm read_qwen3_vl_moe(const Reader& r) {
  return qwen3_vl(r, "qwen3_vl_moe", read_qwen3_vl_moe_text(r.object("text_config")));
}

/// model_type "cosmos3_omni": models/cosmos3_omni/configuration_cosmos3_omni.py, Qwen3-VL around parts that name their
/// types. A checkpoint's generator of pictures, sound and actions is no part of the class.
inline Vlm read_cosmos3_omni(const Reader& r) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  if (const std::string tower = v.string("model_type", "qwen3_vl_vision");
      tower != "qwen3_vl_vision" && tower != "qwen3_vl")
    v.fail("model_type", "'" + tower + "' is not modelled", "known: qwen3_vl_vision");
  if (const std::string text = t.string("model_type", "qwen3_vl_text"); text != "qwen3_vl_text")
    t.fail("model_type", "'" + text + "' is not modelled", "known: qwen3_vl_text");
  return qwen3_vl(r, "cosmos3_omni", read_qwen3_vl_text(t));
}

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen3Vl {
  static constexpr std::string_view folder = "qwen3_vl";
  static constexpr std::array types{json::ModelType{.type = "qwen3_vl",
                                                    .read = json::hf::read_qwen3_vl,
                                                    .recorder = json::RecorderInputs{"native.qwen3_vl", 512},
                                                    .text_part = "qwen3_vl_text"},
                                    json::ModelType{.type = "qwen3_vl_moe",
                                                    .read = json::hf::read_qwen3_vl_moe,
                                                    .recorder = json::RecorderInputs{"native.qwen3_vl", 512},
                                                    .text_part = "qwen3_vl_moe_text"},
                                    json::ModelType{.type = "cosmos3_omni",
                                                    .read = json::hf::read_cosmos3_omni,
                                                    .recorder = json::RecorderInputs{"native.qwen3_vl", 512}}};
  using Rules = json::Rules<image_processor::Qwen3Vl>;
};

}  // namespace vlmest::family
