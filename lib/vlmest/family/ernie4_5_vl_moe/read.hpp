// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include <vlmest/family/ernie4_5_vl_moe/family.hpp>
#include <vlmest/family/ernie4_5_vl_moe/rule.hpp>
#include <vlmest/json/family_row.hpp>
#include <vlmest/json/hf/qwen_vl.hpp>
#include <vlmest/json/processor/video.hpp>
#include <vlmest/nn/vlm.hpp>

/// transformers 5.17, models/ernie4_5_vl_moe/configuration_ernie4_5_vl_moe.py.
namespace vlmest::json::hf {

/// Ernie4_5_VLMoeVisionConfig.
inline Ernie4_5Vision read_ernie_vision(const Reader& v) {
  Ernie4_5Vision g;
  g.hidden = v.integer("hidden_size", g.hidden, 1, 1 << 20);
  g.intermediate = v.integer("intermediate_size", g.intermediate, 1, 1 << 24);
  g.layers = v.layers("depth", g.layers);
  const char* const heads = v.either("num_heads", "num_attention_heads");
  g.heads = v.integer(heads, g.heads, 1, 1 << 16);
  g.patch_size = v.side("patch_size", g.patch_size);
  g.channels = v.integer("in_channels", g.channels, 1, 1 << 10);
  g.merge = v.integer("spatial_merge_size", g.merge, 1, 64);
  g.activation = parse_activation(v.string("hidden_act", "quick_gelu"));
  divides(v, heads, g.hidden, g.heads);
  if (g.hidden / g.heads % 4 != 0) v.fail(heads, "rotation over two axes needs a head size that is a multiple of 4");
  if (v.integer("temporal_merge_size", ResamplerConfig::temporal, 1, 64) != ResamplerConfig::temporal)
    v.fail("temporal_merge_size", "the resampler takes even and odd frames apart, and fails with any other number",
           "give 2");
  return g;
}

/// Widths of a text expert and of a vision expert.
inline std::array<std::int64_t, 2> read_expert_widths(const Reader& t, std::int64_t text, std::int64_t vision) {
  const std::vector<std::int64_t> widths = t.integers("moe_intermediate_size", {text, vision});
  if (widths.size() != 2)
    t.fail("moe_intermediate_size", "expected two numbers, of text and of vision experts", "give [1536, 512], say");
  for (const std::int64_t n : widths)
    if (n < 1 || n > 1 << 24) t.fail("moe_intermediate_size", "both entries must lie between 1 and 16777216");
  return {widths[0], widths[1]};
}

/// Both kinds of experts are as many, and as many of them are chosen.
inline ModalityMoeConfig read_modality_experts(const Reader& t, std::int64_t hidden, Activation activation, bool bias) {
  ModalityMoeConfig d;
  const auto [text, vision] = read_expert_widths(t, d.text.inner, d.vision.inner);
  const char* const all = t.either("moe_num_experts", "num_experts");
  const char* const chosen = t.either("moe_k", "num_experts_per_tok");
  const std::int64_t experts = t.integer(all, d.text.experts, 1, 1023),
                     top_k = t.integer(chosen, d.text.top_k, 1, 1023);
  if (top_k > experts)
    t.fail(chosen, std::to_string(top_k) + " of " + std::to_string(experts) + " experts",
           "give at most moe_num_experts");
  for (MoeConfig* m : {&d.text, &d.vision}) {
    m->hidden = hidden;
    m->experts = experts;
    m->top_k = top_k;
    m->activation = activation;
  }
  d.text.inner = text;
  d.vision.inner = vision;
  d.shared = t.integer("moe_num_shared_experts", d.shared, 0, 1023);
  d.bias = bias;
  if (t.boolean("output_router_logits", false))
    t.fail("output_router_logits", "the loss over the router's logits is not modelled", "set it to false");
  return d;
}

/// Frequencies of rows, columns and time: the first two are laid out in turns.
inline std::vector<std::int64_t> read_ernie_sections(const Reader& t, std::int64_t head_dim) {
  const Reader rope = rope_parameters(t);
  if (const std::string type = rope.string("rope_type", rope.string("type", "default")); type != "default")
    rope.fail("rope_type", "'" + type.substr(0, 64) + "', but the class takes no other than default", "leave it out");
  const std::vector<std::int64_t> s = mrope_sections(t, {22, 22, 20});
  if (s.size() != 3 || s[0] != s[1] || s[0] + s[1] + s[2] != head_dim / 2)
    rope.fail("mrope_section",
              "expected as many frequencies for rows as for columns, and with those for time the " +
                  std::to_string(head_dim / 2) + " of a head",
              "[22, 22, 20] fits heads of 128 channels");
  return s;
}

/// Ernie4_5_VLMoeTextConfig: without mlp_layer_types all layers but the first are sparse.
inline Ernie4_5TextConfig read_ernie_text(const Reader& t) {
  Ernie4_5TextConfig d = text_model(t, Ernie4_5TextConfig{}, 4, std::nullopt);
  d.bias = t.boolean("use_bias", false);
  d.moe = read_modality_experts(t, d.hidden, d.activation, d.bias);
  d.sections = read_ernie_sections(t, d.head_dim);
  if (t.given("mlp_layer_types")) {
    d.sparse = marked_layers(t, "mlp_layer_types", d.layers, "dense", "sparse");
  } else {
    for (std::int64_t i = 0; i < d.layers; ++i) d.sparse.push_back(i > 0);
  }
  return d;
}

/// model_type "ernie4_5_vl_moe". What the text_config says of tied weights has no effect.
inline Vlm read_ernie4_5_vl_moe(const Reader& r) {
  Ernie4_5VlFamily f{.vision = read_ernie_vision(r.object("vision_config")), .language = read_ernie_text(qwen_text(r))};
  f.resampler = {.in = f.vision.hidden, .out = f.language.hidden, .merge = f.vision.merge};
  f.tied = r.boolean("tie_word_embeddings", true);
  Vlm m{.type = "ernie4_5_vl_moe"};
  m.image_processor = image_processor::Ernie4_5Vl{.patch_size = f.vision.patch_size, .merge = f.vision.merge};
  m.native = {448, 448};
  m.family = std::move(f);
  return m;
}

}  // namespace vlmest::json::hf

namespace vlmest::json {

inline void read_image(DescriptionImage& image, image_processor::Ernie4_5Vl& rule) { image.budget(rule.budget); }
/// Ernie4_5_VLMoeImageProcessor, which knows `size` alone.
inline void read_image_keys(ProcessorKeys& k, image_processor::Ernie4_5Vl& rule) {
  read_single_frame_keys(k, rule);
  read_budget(k, rule.budget, {56 * 56, 28 * 28 * 6177}, false);
}
inline void read_outer_keys(ProcessorKeys&, image_processor::Ernie4_5Vl&) {}
/// Ernie4_5_VLMoeVideoProcessor. Timestamps are drawn on the frames and take no token.
inline void read_video_keys(ProcessorKeys& k, image_processor::Ernie4_5Vl& rule) {
  k.must_be("do_resize", true);
  k.same("patch_size", rule.patch_size, "vision_config.patch_size");
  k.same("merge_size", rule.merge, "vision_config.spatial_merge_size");
  k.same("temporal_patch_size", rule.frames_merged, "the resampler, which merges two frames,");
  image_processor::VideoLimits& v = rule.video;
  read_budget(k, v.budget, {299 * 28 * 28, 1196 * 28 * 28}, false);
  v.fps = read_rate(k, std::nullopt);
  refuse_num_frames(k);
  v.min_frames = k.integer("min_frames", 16, 1, image_processor::max_frames);
  v.max_frames = k.integer("max_frames", 180, v.min_frames, image_processor::max_frames);
  k.ignore({"draw_on_frames", "font"});
}

}  // namespace vlmest::json

namespace vlmest::family {

struct Ernie4_5VlMoe {
  static constexpr std::string_view folder = "ernie4_5_vl_moe";
  static constexpr std::array types{json::ModelType{.type = "ernie4_5_vl_moe",
                                                    .read = json::hf::read_ernie4_5_vl_moe,
                                                    .recorder = json::RecorderInputs{"native.ernie4_5_vl_moe", 448},
                                                    .text_part = "ernie4_5_vl_moe_text"}};
  using Rules = json::Rules<image_processor::Ernie4_5Vl>;
};

}  // namespace vlmest::family
