// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vlmest/family/glm4v/family.hpp>
#include <vlmest/family/glm4v/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/deepseek.hpp>
#include <vlmest/json/hf/glm_text.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// GLM-4.1V, GLM-4.5V, GLM-4.6V, GLM-OCR and Glmga: transformers 5.17, models/glm4v/configuration_glm4v.py,
/// models/glm4v_moe/configuration_glm4v_moe.py, models/glm46v/configuration_glm46v.py,
/// models/glm_ocr/configuration_glm_ocr.py and models/glmga/configuration_glmga.py.
namespace vlmest::json::hf {

/// What Glm4vVisionConfig and GlmOcrVisionConfig share; intermediate_size sizes different modules in the two.
inline Glm4vVision read_glm_tower(const Reader& v, Glm4vVision d) {
  d = qwen_tower(v, std::move(d), "hidden_size", "silu");
  d.out_hidden = v.integer("out_hidden_size", d.out_hidden, 1, 1 << 20);
  d.attention_bias = v.boolean("attention_bias", d.attention_bias);
  return d;
}

/// Glm4vVisionConfig and Glm4vMoeVisionConfig, which agree.
inline Glm4vVision read_glm4v_tower(const Reader& v) {
  Glm4vVision d = read_glm_tower(v, {});
  d.intermediate = d.out_hidden;
  d.merger = v.integer("intermediate_size", d.merger, 1, 1 << 24);
  d.image_size = v.side("image_size", d.image_size);
  if (d.patch_size > d.image_size) v.fail("patch_size", "larger than the image");
  return d;
}

/// GlmOcrVisionConfig. The merger is out_hidden_size times in_channels wide.
inline Glm4vVision read_glm_ocr_tower(const Reader& v) {
  Glm4vVision d = read_glm_tower(v, {.hidden = 1024, .heads = 16, .out_hidden = 1536, .attention_bias = true});
  d.intermediate = v.integer("intermediate_size", 4096, 1, 1 << 24);
  d.merger = checked_mul(d.out_hidden, d.channels);
  d.block_bias = d.attention_bias;
  d.qk_norm = true;
  d.position_table = false;
  return d;
}

template <class Text>
void read_glm_rotation(const Reader& t, Text& d, double absent = 1.0) {
  d.rotary_dim = read_rotary_dim(t, d.head_dim, absent);
  d.sections = fit_sections(mrope_sections(t, {8, 12, 12}), d.rotary_dim / 2);
}

/// Glm4vTextConfig. The attention's heads fill hidden_size, whatever head_dim says.
inline Glm4vTextConfig read_glm4v_text(const Reader& t) {
  const Glm4vTextConfig defaults;
  Glm4vTextConfig d = text_model(t, defaults, defaults.kv_heads, std::nullopt);
  check_heads_fill(t, d.hidden, d.heads, d.head_dim);
  read_glm_rotation(t, d);
  return d;
}

/// GlmOcrTextConfig.
inline Glm4vTextConfig read_glm_ocr_text(const Reader& t) {
  Glm4vTextConfig d = text_model(
      t,
      Glm4vTextConfig{
          .vocab = 59392, .hidden = 1024, .intermediate = 4096, .layers = 16, .heads = 16, .qkv_bias = false},
      8, std::nullopt);
  read_glm_rotation(t, d);
  return d;
}

/// Glm4vMoeTextConfig.
inline Glm4vMoeTextConfig read_glm4v_moe_text(const Reader& t) {
  const Glm4vMoeTextConfig defaults;
  Glm4vMoeTextConfig d = text_model(t, defaults, defaults.kv_heads, std::nullopt);
  read_glm_rotation(t, d, 0.5);
  d.qkv_bias = t.boolean("attention_bias", d.qkv_bias);
  d.attention_dropout = read_dropout(t, "attention_dropout", 0.0);
  d.moe = read_grouped_experts(t, d.moe, d.hidden, d.activation);
  d.dense_layers = t.integer("first_k_dense_replace", d.dense_layers, 0, 1024);
  return d;
}

/// The parts of a model of the family put together. Throws Error where the merger does not end in the language
/// model's width.
template <class Text>
Vlm glm_model(std::string_view type, const Reader& v, Glm4vVision vision, Text language, bool tied) {
  QwenVlFamily<Glm4vVision, Text> f;
  f.vision = std::move(vision);
  f.language = std::move(language);
  f.tied = tied;
  if (f.vision.out_hidden != width(f.language))
    v.fail("out_hidden_size", "the merger must end in the language model's hidden_size");
  Vlm m{.type = std::string(type)};
  m.image_processor = image_processor::Glm4v{
      .patch_size = f.vision.patch_size, .merge = f.vision.merge, .temporal_patch_size = f.vision.frames};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

/// model_type "glm4v".
inline Vlm read_glm4v(const Reader& r) {
  const Reader v = r.object("vision_config");
  return glm_model("glm4v", v, read_glm4v_tower(v), read_glm4v_text(qwen_text(r)), qwen_tied(r));
}

/// model_type "glm4v_moe".
inline Vlm read_glm4v_moe(const Reader& r) {
  const Reader v = r.object("vision_config");
  return glm_model("glm4v_moe", v, read_glm4v_tower(v), read_glm4v_moe_text(qwen_text(r)), qwen_tied(r));
}

/// Either model around parts that name their types; only its own tie_word_embeddings counts.
inline Vlm glm46v_model(const Reader& r, std::string_view type) {
  const Reader v = r.object("vision_config"), t = r.object("text_config");
  const std::string tower = v.string("model_type", "glm4v_vision"), text = t.string("model_type", "glm4v_text");
  if (tower != "glm4v_vision" && tower != "glm4v_moe_vision")
    v.fail("model_type", "'" + tower + "' is not modelled", "known: glm4v_vision, glm4v_moe_vision");
  if (text != "glm4v_text" && text != "glm4v_moe_text")
    t.fail("model_type", "'" + text + "' is not modelled", "known: glm4v_text, glm4v_moe_text");
  const bool tied = r.boolean("tie_word_embeddings", false);
  Vlm m = text == "glm4v_text" ? glm_model(type, v, read_glm4v_tower(v), read_glm4v_text(t), tied)
                               : glm_model(type, v, read_glm4v_tower(v), read_glm4v_moe_text(t), tied);
  get<image_processor::Glm4v>(m.image_processor).glm46v = true;
  return m;
}

/// model_type "glm46v".
inline Vlm read_glm46v(const Reader& r) { return glm46v_model(r, "glm46v"); }

/// model_type "glmga": GLM-4.6V's model and processor around image and video processors of its own.
inline Vlm read_glmga(const Reader& r) {
  Vlm m = glm46v_model(r, "glmga");
  auto& rule = get<image_processor::Glm4v>(m.image_processor);
  rule.glmga = true;
  rule.video.budget = {112 * 112, 28 * 28 * 2 * 55790};
  return m;
}

/// model_type "glm_ocr". Its processor leaves fewer pixels than the class does (preprocessor_config.json of
/// zai-org/GLM-OCR).
inline Vlm read_glm_ocr(const Reader& r) {
  const Reader v = r.object("vision_config");
  Vlm m = glm_model("glm_ocr", v, read_glm_ocr_tower(v), read_glm_ocr_text(qwen_text(r)), qwen_tied(r));
  auto& rule = get<image_processor::Glm4v>(m.image_processor);
  rule.budget = {12544, 9633792};
  rule.glm46v = true;
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Glm4v& rule) { image.budget(rule.budget); }
inline void read_image_keys(ProcessorKeys& k, image_processor::Glm4v& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.spatial_merge_size");
  k.same("temporal_patch_size", rule.temporal_patch_size, "vision_config.temporal_patch_size");
  read_budget(k, rule.budget, {112 * 112, 28 * 28 * 15000}, false);
  if (rule.glmga) rule.expand = k.integer("patch_expand_factor", 1, 1, 64);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Glm4v&) {}
/// Glm4vVideoProcessor and Glm46VVideoProcessor, which checkpoints of one model_type name (GLM-4.5V and GLM-4.6V), and
/// GlmgaVideoProcessor. The patch_expand_factor of pictures and of videos stand in files of their own.
inline void read_video_keys(ProcessorKeys& k, image_processor::Glm4v& rule) {
  if (k.given("video_processor_type")) rule.glm46v = k.string("video_processor_type") == "Glm46VVideoProcessor";
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.spatial_merge_size");
  k.same("temporal_patch_size", rule.temporal_patch_size, "vision_config.temporal_patch_size");
  read_budget(k, rule.video.budget, {112 * 112, 28 * 28 * 2 * (rule.glmga ? 55790 : 30000)}, false);
  rule.video.fps = read_rate(k, 2);
  if (rule.glmga) {
    k.same("patch_expand_factor", rule.expand, "the image processor's patch_expand_factor");
    rule.max_frames = k.integer("max_frames", 640, 1, image_processor::max_frames);
  } else {
    if (rule.glm46v) rule.video.fps = 2;  // which that processor does not read
    rule.max_duration = k.number("max_duration", 300);
  }
  k.ignore({"num_frames", "max_image_size"});  // unused there
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Glm4v {
  static constexpr std::string_view folder = "glm4v";
  static constexpr std::array types{
      json::ModelType{.type = "glm4v",
                      .read = json::hf::read_glm4v,
                      .recorder = json::RecorderInputs{"native.glm4v", 448},
                      .text_part = "glm4v_text"},
      json::ModelType{.type = "glm4v_moe",
                      .read = json::hf::read_glm4v_moe,
                      .recorder = json::RecorderInputs{"native.glm4v", 448},
                      .text_part = "glm4v_moe_text"},
      json::ModelType{
          .type = "glm46v", .read = json::hf::read_glm46v, .recorder = json::RecorderInputs{"native.glm4v", 448}},
      json::ModelType{
          .type = "glm_ocr", .read = json::hf::read_glm_ocr, .recorder = json::RecorderInputs{"native.glm4v", 448}},
      json::ModelType{
          .type = "glmga", .read = json::hf::read_glmga, .recorder = json::RecorderInputs{"native.glm4v", 448}}};
  using Rules = json::Rules<image_processor::Glm4v>;
};

}  // namespace vlmest::family
