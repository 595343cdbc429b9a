// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/qwen3_5/family.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen3_5_text.hpp>
#include <vlmest/json/hf/qwen3_vl.hpp>
#include <vlmest/json/hf/text_only.hpp>
#include <vlmest/nn/vlm.hpp>

/// Qwen3.5, 3.6 and 3.8, dense and with experts: transformers 5.17, models/qwen3_5/configuration_qwen3_5.py and
/// models/qwen3_5_moe/configuration_qwen3_5_moe.py.
namespace vlmest::json::hf {

/// Qwen3_5MoeTextConfig: every layer has experts and one that sees every token.
inline Qwen35TextConfig read_qwen3_5_moe_text(const Reader& t) {
  Qwen35TextConfig d;
  d.layers.hidden = 2048;
  d.layers.layers = 40;
  d = qwen3_5_text(t, d, 2);
  d.moe = read_experts(t,
                       {.hidden = d.layers.hidden,
                        .activation = d.layers.activation,
                        .shared = t.integer("shared_expert_intermediate_size", 512, 1, 1 << 24)},
                       512, 256, 8);
  if (d.moe.experts == 0) t.fail("num_experts", "the class has no layers without experts", "give at least one");
  if (t.boolean("output_router_logits", false))
    t.fail("output_router_logits", "the loss over the router's logits is not modelled", "set it to false");
  return d;
}

/// Qwen3-VL's tower, of which the class reads no deepstack_visual_indexes; those of released files are empty.
inline Qwen3VlVision read_qwen3_5_vision(const Reader& v) {
  Qwen3VlVision g = qwen_tower(v, Qwen3VlVision{}, "hidden_size", "gelu_pytorch_tanh");
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.out_hidden = v.integer("out_hidden_size", g.out_hidden, 1, 1 << 20);
  g.positions = v.integer("num_position_embeddings", g.positions, 1, 1 << 24);
  g.deepstack.clear();
  if (!v.integers("deepstack_visual_indexes", {}).empty())
    v.fail("deepstack_visual_indexes", "transformers' class has no DeepStack layers", "leave it out");
  return g;
}

inline Vlm qwen3_5(const Reader& r, const char* type, Qwen35TextConfig language) {
  return around_qwen3_tower<Qwen35Family>(r, type, read_qwen3_5_vision(r.object("vision_config")), std::move(language));
}

/// model_type "qwen3_5".
inline Vlm read_qwen3_5(const Reader& r) { return qwen3_5(r, "qwen3_5", read_qwen3_5_text(r.object("text_config"))); }

/// model_type "qwen3_5_moe".
inline Vlm read_qwen3_5_moe(const Reader& r) {
  return qwen3_5(r, "qwen3_5_moe", read_qwen3_5_moe_text(r.object("text_config")));
}

inline Vlm qwen3_5_lm(const Reader& r, std::string_view type, Qwen35TextConfig language) {
  Qwen35LmFamily f;
  f.language = std::move(language);
  f.tied = r.boolean("tie_word_embeddings", false);
  return text_only(type, std::move(f));
}

/// model_type "qwen3_5_text": Qwen3_5ForCausalLM.
inline Vlm read_qwen3_5_lm(const Reader& r) { return qwen3_5_lm(r, "qwen3_5_text", read_qwen3_5_text(r)); }

/// model_type "qwen3_5_moe_text": Qwen3_5MoeForCausalLM.
inline Vlm read_qwen3_5_moe_lm(const Reader& r) { return qwen3_5_lm(r, "qwen3_5_moe_text", read_qwen3_5_moe_text(r)); }

}  // namespace vlmest::json::hf

namespace vlmest::family {

struct Qwen35 {
  static constexpr std::string_view folder = "qwen3_5";
  static constexpr std::array types{
      json::ModelType{
          .type = "qwen3_5", .read = json::hf::read_qwen3_5, .recorder = json::RecorderInputs{"native.qwen3_vl", 512}},
      json::ModelType{.type = "qwen3_5_moe",
                      .read = json::hf::read_qwen3_5_moe,
                      .recorder = json::RecorderInputs{"native.qwen3_vl", 512}},
      json::ModelType{.type = "qwen3_5_text", .read = json::hf::read_qwen3_5_lm, .recorder = json::not_recorded},
      json::ModelType{
          .type = "qwen3_5_moe_text", .read = json::hf::read_qwen3_5_moe_lm, .recorder = json::not_recorded}};
  using Rules = json::Rules<image_processor::Qwen3Vl>;
};

}  // namespace vlmest::family
